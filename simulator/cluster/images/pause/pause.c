/* The first process of every pod: it keeps the pod's network, and sleeps. */
#include <signal.h>
#include <unistd.h>

static void end(int signal)
{
    (void)signal;
    _exit(0);
}

int main(void)
{
    signal(SIGTERM, end);
    signal(SIGINT, end);
    for (;;)
        pause();
}
