#include "core/bmc/settings.h"

#include <ctype.h>
#include <string.h>

#include "base/parse.h"
#include "core/bmc/adaptor.h"
#include "core/httpc.h"

enum rc settings_check_name(const char *name, struct err *err) {
	size_t len = strlen(name);
	if (!len || len >= sizeof(((struct host *)0)->name))
		return err_field(err, RC_INVALID, "/name", "must have 1 to 64 bytes");
	for (size_t i = 0; i < len; i++) {
		if (iscntrl((unsigned char)name[i]))
			return err_field(
				err, RC_INVALID, "/name", "must have no control characters");
	}
	return RC_OK;
}

/* --- url --- */

static bool is_host_char(char c) {
	return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

/* "host", "host:443", "[::1]:443" to the end of the text. */
static bool is_authority(const char *p) {
	const char *begin = p;
	if (*p == '[') {
		p++;
		while (isxdigit((unsigned char)*p) || *p == ':' || *p == '.')
			p++;
		if (*p++ != ']')
			return false;
	} else {
		while (is_host_char(*p))
			p++;
	}
	if (p == begin)
		return false;
	int64_t port;
	return !*p || (*p == ':' && parse_i64(p + 1, 1, 65535, &port, "", NULL) == RC_OK);
}

static enum rc normalise_url(struct bmc_settings *b, struct err *err) {
	size_t len = strlen(b->url);
	if (len && b->url[len - 1] == '/')
		b->url[--len] = '\0';
	for (size_t i = 0; i < len; i++)
		b->url[i] = (char)tolower((unsigned char)b->url[i]);
	bool plain = strncmp(b->url, "http://", 7) == 0;
	if (plain && !b->allow_plaintext)
		return err_field(err, RC_INVALID, "/bmc/url",
			"must begin with https:// unless allow_plaintext is true");
	if (!plain && strncmp(b->url, "https://", 8) != 0)
		return err_field(err, RC_INVALID, "/bmc/url", "must begin with https://");
	if (!is_authority(b->url + (plain ? 7 : 8)))
		return err_field(err, RC_INVALID, "/bmc/url",
			"must be a host and perhaps a port, without user, path or query");
	return RC_OK;
}

/* --- tls --- */

static enum rc normalise_pin(struct bmc_settings *b, struct err *err) {
	for (char *p = b->fingerprint_sha256; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	if (strspn(b->fingerprint_sha256, "0123456789abcdef") != 64)
		return err_field(err, RC_INVALID, "/bmc/tls/fingerprint_sha256",
			"must be 64 hexadecimal digits");
	return RC_OK;
}

static enum rc check_ca(const struct bmc_settings *b, struct err *err) {
	if (b->ca_file[0] && (b->ca_file[0] != '/' || httpc_check_ca(b->ca_file, NULL)))
		return err_field(err, RC_INVALID, "/bmc/tls/ca_file",
			"must be the absolute path of a readable regular file of at most 1 MiB");
	return RC_OK;
}

static enum rc check_ciphers(const struct bmc_settings *b, struct err *err) {
	if (b->ciphers[0] && !httpc_knows_ciphers(b->ciphers))
		return err_field(err, RC_INVALID, "/bmc/tls/ciphers",
			"must be a list of ciphers as OpenSSL writes it");
	return RC_OK;
}

static enum rc normalise_tls(struct bmc_settings *b, struct err *err) {
	enum bmc_tls tls = b->tls;
	enum rc rc = check_ciphers(b, err);
	if (rc)
		return rc;
	if (tls == BMC_TLS_PIN)
		return normalise_pin(b, err);
	if (b->fingerprint_sha256[0])
		return err_field(err, RC_INVALID, "/bmc/tls/fingerprint_sha256",
			"belongs to verify \"pin\" only");
	if (tls == BMC_TLS_CA)
		return check_ca(b, err);
	return RC_OK;
}

/* --- all --- */

enum rc settings_normalise(struct bmc_settings *b, struct err *err) {
	if (!b->present) {
		*b = (struct bmc_settings){.present = false, .vendor = BMC_VENDOR_AUTO};
		return RC_OK;
	}
	if (!b->vendor[0])
		str_copy(b->vendor, sizeof(b->vendor), BMC_VENDOR_AUTO);
	if (!bmc_vendor_is_known(b->vendor))
		return err_field(err, RC_INVALID, "/bmc/vendor", "is not known: %s", b->vendor);
	/* Basic authentication has no way to say a colon. */
	if (strchr(b->username, ':'))
		return err_field(err, RC_INVALID, "/bmc/username", "must have no colon");
	enum rc rc = normalise_url(b, err);
	return rc ? rc : normalise_tls(b, err);
}

bool settings_are_same(const struct bmc_settings *a, const struct bmc_settings *b) {
	return a->present == b->present && strcmp(a->url, b->url) == 0 &&
		strcmp(a->username, b->username) == 0 && strcmp(a->vendor, b->vendor) == 0 &&
		a->tls == b->tls && a->allow_plaintext == b->allow_plaintext &&
		strcmp(a->ca_file, b->ca_file) == 0 &&
		strcmp(a->fingerprint_sha256, b->fingerprint_sha256) == 0 &&
		strcmp(a->ciphers, b->ciphers) == 0;
}
