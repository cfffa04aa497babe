/* What a process did lately, in samples of one period each, as drivers keep them. */
#include "library.h"

static const struct level NO_LEVEL = {0};

static const struct level *nth_level(const struct record *record, uint32_t number)
{
    return &record->levels[number % MAX_LEVELS];
}

struct level level_of(const struct record *record)
{
    return record->level_count == 0 ? NO_LEVEL : *nth_level(record, record->level_count - 1);
}

/* The end of the last period that is over. */
uint64_t sample_time(void)
{
    return now_microseconds() / SAMPLE_MICROSECONDS * SAMPLE_MICROSECONDS;
}

static bool is_busy(const struct level *level)
{
    return (level->sm | level->bandwidth | level->encoder | level->decoder) != 0;
}

static void add(struct work *sum, const struct level *level, uint64_t microseconds)
{
    sum->sm += level->sm * microseconds;
    sum->bandwidth += level->bandwidth * microseconds;
    sum->encoder += level->encoder * microseconds;
    sum->decoder += level->decoder * microseconds;
}

/*
 * Add up what a record did within (after, until], in percent times microseconds; `newest` becomes
 * the end of the newest sample that shows it. Returns whether there is one.
 */
bool add_work(const struct record *record, uint64_t after, uint64_t until, struct work *sum)
{
    bool any = false;
    uint32_t newest = record->level_count;
    uint32_t oldest = newest > MAX_LEVELS ? newest - MAX_LEVELS : 0;
    for (uint32_t number = oldest; number < newest; number++) {
        const struct level *level = nth_level(record, number);
        uint64_t end = number + 1 < newest ? nth_level(record, number + 1)->since : until;
        uint64_t begin = level->since > after ? level->since : after;
        end = end < until ? end : until;
        if (!is_busy(level) || end <= begin)
            continue;
        uint64_t last = end / SAMPLE_MICROSECONDS;
        /* A kernel shows in the sample of the period in which it ran, however short it was. */
        if (end % SAMPLE_MICROSECONDS != 0 && (last + 1) * SAMPLE_MICROSECONDS <= until)
            last++;
        if (last == begin / SAMPLE_MICROSECONDS)
            continue;
        any = true;
        add(sum, level, end - begin);
        sum->newest = last * SAMPLE_MICROSECONDS;
    }
    return any;
}
