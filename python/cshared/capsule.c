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

extern int32_t dsi_release(int64_t batch);

// destroy_batch is C so that it runs no Python code, at which a signal's handler may be called: Python drops what that
// raises in a __del__, such as KeyboardInterrupt.
static void destroy_batch(void *capsule) {
	dsi_batch *b = get_pointer(capsule, 0);
	if (b == 0) return;
	if (b->block != 0 && getpid() == owner) dsi_release(b->id);
	raw_free(b);
}

uintptr_t dsi_destructor_with(void *get, void *free_raw, int32_t of_batch) {
	get_pointer = (void *(*)(void *, const char *))get;
	raw_free = (void (*)(void *))free_raw;
	owner = getpid();
	return of_batch ? (uintptr_t)destroy_batch : (uintptr_t)destroy;
}
