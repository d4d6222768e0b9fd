/* What a change may find: If-Match, If-None-Match, and whether one is demanded (RFC 9110 section
 * 13, RFC 6585 section 3). */
#include "http/etag.h"
#include "http/request_impl.h"
#include "http/server_impl.h"
#include "model/version.h"

static enum rc check_match(const char *list, bool exists, uint32_t version, struct err *err) {
	if (!exists)
		return err_set(err, RC_PRECONDITION, "there is nothing that If-Match could mean");
	if (!etag_list_has_config(list, version, false))
		return err_set(err, RC_PRECONDITION,
			"the resource was changed: If-Match names another version");
	return RC_OK;
}

static enum rc check_none_match(const char *list, bool exists, uint32_t version, struct err *err) {
	if (exists && etag_list_has_config(list, version, true))
		return err_set(err, RC_PRECONDITION, "the resource is there already");
	return RC_OK;
}

enum rc http_check_conditions(const struct http_request *q, bool exists, uint32_t version,
	uint32_t *if_version, struct err *err) {
	const char *match = http_header(q, "If-Match");
	const char *none_match = http_header(q, "If-None-Match");
	enum rc rc = match ? check_match(match, exists, version, err) : RC_OK;
	if (!rc && none_match)
		rc = check_none_match(none_match, exists, version, err);
	if (!rc && exists && !match && q->server->config.require_if_match)
		rc = err_set(
			err, RC_PRECONDITION_REQUIRED, "a change of what is there needs If-Match");
	*if_version = VERSION_ANY;
	if (match && !etag_list_is_any(match))
		*if_version = version;
	else if (none_match && !exists)
		*if_version = VERSION_ABSENT;
	return rc;
}
