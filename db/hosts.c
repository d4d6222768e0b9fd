#include "db/hosts.h"

#include <string.h>

#include "db/sqlite.h"

#define HOST_COLUMNS \
	"id, name, labels, local, config_version, bmc, url, username, password_sealed, vendor," \
	" tls, allow_plaintext, ca_file, fingerprint_sha256, ciphers"

static enum rc host_exists(struct db_conn *c, const char *id, bool *out, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "SELECT 1 FROM host WHERE id = $1");
	stmt_text(st, 1, id);
	return stmt_next(st, out, err);
}

enum rc db_host_put(struct db_conn *c, const struct host *h, bool *created, struct err *err) {
	bool exists;
	enum rc rc = host_exists(c, h->id, &exists, err);
	if (rc != RC_OK)
		return rc;
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO host (" HOST_COLUMNS ")"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
		" ON CONFLICT (id) DO UPDATE SET name = excluded.name, labels = excluded.labels,"
		" local = excluded.local, config_version = excluded.config_version,"
		" bmc = excluded.bmc, url = excluded.url, username = excluded.username,"
		" password_sealed = excluded.password_sealed, vendor = excluded.vendor,"
		" tls = excluded.tls, allow_plaintext = excluded.allow_plaintext,"
		" ca_file = excluded.ca_file, fingerprint_sha256 = excluded.fingerprint_sha256,"
		" ciphers = excluded.ciphers");
	stmt_text(st, 1, h->id);
	stmt_text(st, 2, h->name);
	stmt_text(st, 3, h->labels);
	stmt_int(st, 4, h->local);
	stmt_int(st, 5, h->config_version);
	stmt_int(st, 6, h->bmc.present);
	stmt_text(st, 7, h->bmc.url);
	stmt_text(st, 8, h->bmc.username);
	stmt_text(st, 9, h->bmc.password_sealed);
	stmt_text(st, 10, h->bmc.vendor);
	stmt_text(st, 11, bmc_tls_name(h->bmc.tls));
	stmt_int(st, 12, h->bmc.allow_plaintext);
	stmt_text(st, 13, h->bmc.ca_file);
	stmt_text(st, 14, h->bmc.fingerprint_sha256);
	stmt_text(st, 15, h->bmc.ciphers);
	rc = stmt_run(st, NULL, err);
	if (rc == RC_OK && created)
		*created = !exists;
	return rc;
}

static bool read_bmc(struct stmt *st, struct bmc_settings *b) {
	enum bmc_tls tls;
	if (!bmc_tls_from_name(col_text(st, 10), &tls))
		return false;
	b->tls = (uint8_t)tls;
	b->present = col_int(st, 5) != 0;
	b->allow_plaintext = col_int(st, 11) != 0;
	b->password_sealed = col_lend(st, 8);
	col_copy(st, 6, b->url, sizeof(b->url));
	col_copy(st, 7, b->username, sizeof(b->username));
	col_copy(st, 9, b->vendor, sizeof(b->vendor));
	col_copy(st, 12, b->ca_file, sizeof(b->ca_file));
	col_copy(st, 13, b->fingerprint_sha256, sizeof(b->fingerprint_sha256));
	col_copy(st, 14, b->ciphers, sizeof(b->ciphers));
	return true;
}

static bool read_host(struct stmt *st, struct host *h) {
	memset(h, 0, sizeof(*h));
	col_copy(st, 0, h->id, sizeof(h->id));
	col_copy(st, 1, h->name, sizeof(h->name));
	col_copy(st, 2, h->labels, sizeof(h->labels));
	h->local = col_int(st, 3) != 0;
	h->config_version = (uint32_t)col_int(st, 4);
	return read_bmc(st, &h->bmc);
}

static bool read_baseline(struct stmt *st, struct host *h) {
	enum baseline_kind kind;
	enum baseline_source source;
	if (!baseline_kind_from_name(col_text(st, 0), &kind) ||
		!baseline_source_from_name(col_text(st, 1), &source))
		return false;
	h->baselines[kind] = (struct baseline){
		.known = true,
		.source = (uint8_t)source,
		.power_mw = col_int(st, 2),
		.uncertainty_mw = col_opt(st, 3),
		.at_ms = col_int(st, 4),
	};
	return true;
}

static enum rc read_baselines(struct db_conn *c, struct host *h, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT kind, source, power_mw, uncertainty_mw, at_ms FROM baseline WHERE host_id "
		"= "
		"$1");
	enum rc rc;
	bool row;
	stmt_text(st, 1, h->id);
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		if (!read_baseline(st, h))
			return stmt_damaged(st, err);
	}
	return rc;
}

enum rc db_host_each(struct db_conn *c, bool (*visit)(void *arg, const struct host *h), void *arg,
	struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "SELECT " HOST_COLUMNS " FROM host ORDER BY id");
	enum rc rc;
	bool row;
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct host h;
		if (!read_host(st, &h))
			return stmt_damaged(st, err);
		rc = read_baselines(c, &h, err);
		if (rc != RC_OK || !visit(arg, &h))
			break;
	}
	return rc;
}

enum rc db_host_delete(struct db_conn *c, const char *id, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "DELETE FROM host WHERE id = $1");
	stmt_text(st, 1, id);
	return stmt_change(st, "host", err);
}

static enum rc remove_baseline(
	struct db_conn *c, const char *host_id, enum baseline_kind kind, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "DELETE FROM baseline WHERE host_id = $1 AND kind = $2");
	stmt_text(st, 1, host_id);
	stmt_text(st, 2, baseline_kind_name(kind));
	return stmt_run(st, NULL, err);
}

enum rc db_baseline_put(struct db_conn *c, const char *host_id, enum baseline_kind kind,
	const struct baseline *b, struct err *err) {
	if (!b->known)
		return remove_baseline(c, host_id, kind, err);
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO baseline (host_id, kind, source, power_mw, uncertainty_mw, at_ms)"
		" VALUES ($1, $2, $3, $4, $5, $6)"
		" ON CONFLICT (host_id, kind) DO UPDATE SET source = excluded.source,"
		" power_mw = excluded.power_mw, uncertainty_mw = excluded.uncertainty_mw,"
		" at_ms = excluded.at_ms");
	stmt_text(st, 1, host_id);
	stmt_text(st, 2, baseline_kind_name(kind));
	stmt_text(st, 3, baseline_source_name(b->source));
	stmt_int(st, 4, b->power_mw);
	stmt_opt(st, 5, b->uncertainty_mw);
	stmt_int(st, 6, b->at_ms);
	return stmt_run(st, NULL, err);
}
