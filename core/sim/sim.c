#include "core/sim.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/sim/host.h"
#include "core/sim/nbd.h"
#include "core/sim/target.h"

struct sim {
	struct sim_model model;
	unsigned scale;
	struct sim_pace *pace;
	struct sim_target *target;
	struct sim_nbd *nbd;
	struct sim_host *host; /* NULL without hosts */
};

static enum rc load_model(const struct sim_config *config, struct sim_model *out, struct err *err) {
	if (config->model_file)
		return sim_model_file(config->model_file, out, err);
	return sim_model_builtin(config->model ? config->model : "", out, err);
}

static bool make_drives(struct sim *s, const struct sim_config *config, struct err *err) {
	const struct sim_target_config target = {
		.model = &s->model,
		.drives = config->drives,
		.scale = s->scale,
		.instance_id = config->instance_id,
	};
	const struct sim_nbd_config nbd = {
		.socket_dir = config->socket_dir,
		.drives = config->drives,
		.size_bytes = (uint64_t)s->model.capacity_bytes,
		.block_bytes = (uint32_t)s->model.lba_bytes,
	};
	s->pace = sim_pace_new(&s->model, config->drives, s->scale, clock_mono_ns(), err);
	if (s->pace)
		s->target = sim_target_new(&target, s->pace, err);
	if (s->target)
		s->nbd = sim_nbd_new(&nbd, s->pace, err);
	return s->nbd != NULL;
}

static bool make_host(struct sim *s, const struct sim_config *config, struct energy *energy,
	struct hosts *hosts, struct timers *timers, struct err *err) {
	if (!hosts)
		return true;
	const struct sim_host_parts parts = {
		.model = &s->model,
		.drives = config->drives,
		.seed = sim_hash(config->instance_id, SIM_HASH_BASIS),
		.pace = s->pace,
		.energy = energy,
		.hosts = hosts,
		.timers = timers,
	};
	s->host = sim_host_new(&parts, err);
	return s->host != NULL;
}

struct sim *sim_new(const struct sim_config *config, struct energy *energy, struct hosts *hosts,
	struct timers *timers, struct err *err) {
	if (config->drives < 1 || config->drives > SIM_MAX_DRIVES) {
		err_set(err, RC_INVALID, "1 to %d drives can be simulated", SIM_MAX_DRIVES);
		return NULL;
	}
	struct sim *s = calloc(1, sizeof(*s));
	if (!s) {
		err_set(err, RC_NOMEM, "no memory for the simulator");
		return NULL;
	}
	if (load_model(config, &s->model, err))
		goto fail;
	s->scale = config->scale ? config->scale : (unsigned)s->model.scale;
	if (!make_drives(s, config, err) || !make_host(s, config, energy, hosts, timers, err))
		goto fail;
	log_info("sim", "%u simulated drives %s at scale %u", config->drives, s->model.name,
		s->scale);
	return s;
fail:
	sim_free(s);
	return NULL;
}

void sim_free(struct sim *s) {
	if (!s)
		return;
	sim_host_free(s->host);
	sim_nbd_free(s->nbd);
	sim_target_free(s->target);
	sim_pace_free(s->pace);
	free(s);
}

struct drive_source sim_source(struct sim *s) {
	return sim_target_source(s->target);
}

unsigned sim_scale(const struct sim *s) {
	return s->scale;
}
