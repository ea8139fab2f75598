#include "guard.h"
#include "gil.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
	struct dsi_array_stream under;
	pid_t pid;
} guarded_stream;

typedef struct {
	void (*release)(struct dsi_array *);
	void *private_data;
	pid_t pid;
} guarded_array;

static int forked(pid_t pid) { return pid != getpid(); }

static void release_array(struct dsi_array *a) {
	guarded_array *g = a->private_data;
	if (!forked(g->pid)) {
		a->release = g->release;
		a->private_data = g->private_data;
		a->release(a);
		free(g);
	}
	a->release = NULL;
}

static int get_schema(struct dsi_array_stream *s, void *schema) {
	guarded_stream *g = s->private_data;
	return forked(g->pid) ? EIO : g->under.get_schema(&g->under, schema);
}

static int get_next(struct dsi_array_stream *s, struct dsi_array *out) {
	guarded_stream *g = s->private_data;
	if (forked(g->pid)) {
		return EIO;
	}
	guarded_array *a = malloc(sizeof *a);
	if (a == NULL) {
		return ENOMEM;
	}
	// Some readers come with the GIL, Polars for one. The engine may wait for what other threads of Python do: for
	// credentials, which a function of the program gives.
	void *gil = dsi_gil_release();
	int status = g->under.get_next(&g->under, out);
	dsi_gil_take(gil);
	if (status != 0 || out->release == NULL) { // an error, or the end
		free(a);
		return status;
	}
	*a = (guarded_array){out->release, out->private_data, g->pid};
	out->release = release_array;
	out->private_data = a;
	return 0;
}

static const char *get_last_error(struct dsi_array_stream *s) {
	guarded_stream *g = s->private_data;
	return forked(g->pid) ? "this process was forked from the one that opened the scan: "
	                        "open it here"
	                      : g->under.get_last_error(&g->under);
}

static void release_stream(struct dsi_array_stream *s) {
	guarded_stream *g = s->private_data;
	if (!forked(g->pid)) {
		void *gil = dsi_gil_release(); // as in get_next: the end of a lease is a request
		g->under.release(&g->under);
		dsi_gil_take(gil);
		free(g);
	}
	s->release = NULL;
}

struct dsi_array_stream *dsi_guard(struct dsi_array_stream *out) {
	guarded_stream *g = calloc(1, sizeof *g);
	if (g == NULL) {
		return NULL;
	}
	g->pid = getpid();
	*out = (struct dsi_array_stream){get_schema, get_next, get_last_error, release_stream, g};
	return &g->under;
}
