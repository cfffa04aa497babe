/* Objects behind handles: places in a table of ours, so that a foreign or freed one is recognised. */
#include <string.h>

#include "driver.h"

#define MAX_OBJECTS 65536

static struct object objects[MAX_OBJECTS];
static struct object *unused;
static size_t touched; /* objects beyond it were never used */

struct object *new_object(enum object_kind kind)
{
    struct object *object = unused;
    if (object != NULL)
        unused = object->next;
    else if (touched < MAX_OBJECTS)
        object = &objects[touched++];
    else
        return NULL;
    *object = (struct object){.kind = kind};
    return object;
}

struct object *as_object(const void *handle, enum object_kind kind)
{
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)objects;
    if (offset >= sizeof objects || offset % sizeof objects[0] != 0)
        return NULL;
    struct object *object = &objects[offset / sizeof objects[0]];
    return object->kind == kind ? object : NULL;
}

void drop_object(struct object *object)
{
    object->kind = OBJECT_NONE;
    object->next = unused;
    unused = object;
}

void drop_objects_of(const struct context *context)
{
    for (size_t i = 0; i < touched; i++)
        if (objects[i].kind != OBJECT_NONE && objects[i].context == context)
            drop_object(&objects[i]);
}
