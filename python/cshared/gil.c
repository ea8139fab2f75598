#include <stddef.h>
#include <unistd.h>

#include "gil.h"

static void *(*own)(void);
static void *(*current)(void);
static void *(*save)(void);
static void (*restore)(void *);
static int (*finalizing)(void);

void dsi_gil_with(void *own_, void *current_, void *save_, void *restore_, void *finalizing_) {
	own = (void *(*)(void))own_;
	current = (void *(*)(void))current_;
	save = (void *(*)(void))save_;
	restore = (void (*)(void *))restore_;
	finalizing = (int (*)(void))finalizing_;
}

// PyGILState_Check would say yes to every thread as soon as there is a second interpreter. What this thread was first
// attached to, which may be nothing, is what runs: then it is this thread that holds the lock. In another interpreter
// the two differ, and the lock stays; so it does in the thread that ends the interpreter.
void *dsi_gil_release(void) {
	if (own == NULL || own() == NULL || own() != current() || finalizing()) {
		return NULL;
	}
	return save();
}

// While the interpreter ends, PyEval_RestoreThread ends a thread that is not the main one, through the frames of the
// reader that called. Such a thread waits for the end here, as it does in Python 3.14.
void dsi_gil_take(void *state) {
	if (state == NULL) {
		return;
	}
	while (finalizing()) {
		pause();
	}
	restore(state);
}
