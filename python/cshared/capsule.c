#include <stdint.h>
#include <unistd.h>

#include "capsule.h"

// struct ArrowArrayStream of the Arrow C stream interface.
struct stream {
	void *get_schema, *get_next, *get_last_error;
	void (*release)(struct stream *);
	void *private_data;
};

static void *(*get_pointer)(void *, const char *);
static void (*raw_free)(void *);
static pid_t owner;

// destroy is called when a capsule goes, also while an exception is on its way, when no Python code may run. A stream
// that nobody took over still has its release function, which works only in the process that loaded the engine.
static void destroy(void *capsule) {
	struct stream *s = get_pointer(capsule, "arrow_array_stream");
	if (s == 0) return;
	if (s->release != 0 && getpid() == owner) s->release(s);
	raw_free(s);
}

uintptr_t dsi_destructor_with(void *get, void *free_raw) {
	get_pointer = (void *(*)(void *, const char *))get;
	raw_free = (void (*)(void *))free_raw;
	owner = getpid();
	return (uintptr_t)destroy;
}
