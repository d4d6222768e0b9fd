#include "api/root/prom.h"

#include "model/quality.h"

void prom_family(struct buf *out, const char *name, const char *type, const char *help) {
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

struct prom prom_begin(struct buf *out, const char *name) {
	buf_adds(out, name);
	return (struct prom){.out = out};
}

static void add_escaped(struct buf *out, const char *s) {
	for (; *s; s++) {
		if (*s == '\n')
			buf_adds(out, "\\n");
		else if (*s == '"' || *s == '\\')
			buf_printf(out, "\\%c", *s);
		else
			buf_addc(out, *s);
	}
}

void prom_label(struct prom *p, const char *name, const char *value) {
	buf_addc(p->out, p->labelled ? ',' : '{');
	p->labelled = true;
	buf_adds(p->out, name);
	buf_adds(p->out, "=\"");
	add_escaped(p->out, value);
	buf_addc(p->out, '"');
}

void prom_value(struct prom *p, double value) {
	buf_printf(p->out, "%s %.15g\n", p->labelled ? "}" : "", value);
}

void prom_gauge(struct buf *out, const char *name, const char *help, double value) {
	prom_family(out, name, "gauge", help);
	struct prom p = prom_begin(out, name);
	prom_value(&p, value);
}

bool prom_milli(int64_t milli, double *value) {
	*value = (double)milli / 1000.0;
	return milli != NONE;
}
