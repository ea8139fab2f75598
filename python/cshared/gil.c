#include <stddef.h>

#include "gil.h"

static void *(*own)(void);
static void *(*current)(void);
static void *(*save)(void);
static void (*restore)(void *);

void dsi_gil_with(void *own_, void *current_, void *save_, void *restore_) {
	own = (void *(*)(void))own_;
	current = (void *(*)(void))current_;
	save = (void *(*)(void))save_;
	restore = (void (*)(void *))restore_;
}

// PyGILState_Check would say yes to every thread as soon as there is a second interpreter. What this thread was first
// attached to, which may be nothing, is what runs: then it is this thread that holds the lock. In another interpreter
// the two differ, and the lock stays.
void *dsi_gil_release(void) {
	if (own == NULL || own() == NULL || own() != current()) {
		return NULL;
	}
	return save();
}

void dsi_gil_take(void *state) {
	if (state != NULL) {
		restore(state);
	}
}
