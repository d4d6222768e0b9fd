# drivewatt: one Makefile, no recursion but for the build variants.
#
#   make                 the daemon, build/drivewattd
#   make VARIANT=asan    the same with AddressSanitizer and UBSan, build/asan/drivewattd
#   make help            all targets
#
# A .c file dropped into a layer's folder, a test dropped into tests/unit/<layer>/ and a fuzz
# target dropped into tests/fuzz/ are built without a change here.

BUILD   ?= build
VARIANT ?=
WERROR  ?= 1
CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
PYTHON  ?= /usr/bin/python3
PYTEST  ?= /usr/bin/pytest
SECONDS ?= 60

OUT := $(BUILD)$(addprefix /,$(VARIANT))
GEN := $(BUILD)/gen
BIN := $(OUT)/drivewattd

Q   := $(if $(filter 1,$(V)),,@)
say  = $(if $(Q),@printf '  %-7s %s\n' $(1) $(2))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.PHONY: FORCE

# All processors, unless the command line says otherwise.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# --- flags ------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wvla \
	-Wundef -Wconversion $(if $(filter 1,$(WERROR)),-Werror)

SAN_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined
SAN_tsan := -fsanitize=thread
SAN_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined

FLAGS_      := -O2 -g -DNDEBUG -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong \
	-fstack-clash-protection
FLAGS_asan  := -O1 -g -fno-omit-frame-pointer $(SAN_asan)
FLAGS_tsan  := -O1 -g -fno-omit-frame-pointer $(SAN_tsan)
FLAGS_cov   := -O0 -g --coverage
FLAGS_fuzz  := -O1 -g -fno-omit-frame-pointer $(SAN_fuzz)
LINK_asan   := $(SAN_asan)
LINK_tsan   := $(SAN_tsan)
LINK_cov    := --coverage
LINK_fuzz   := $(SAN_fuzz)

ifeq (,$(filter FLAGS_$(VARIANT),$(.VARIABLES)))
$(error VARIANT is empty, asan, tsan, cov or fuzz)
endif
ifeq ($(VARIANT),fuzz)
CC := clang
endif

# pkg-config is asked when the first file is compiled or linked, and once: deps and help must work
# where it is not installed yet. libnvme.pc names a private library whose .pc file Debian's package
# does not bring; its header needs no flag.
pkg_flags = $(eval $(1) := $(shell pkg-config $(2)))$($(1))
PKG_CFLAGS = $(call pkg_flags,PKG_CFLAGS,\
	--cflags $(sort $(filter-out libnvme,$(foreach l,$(LAYERS),$(PKGS_$l)))))

INCLUDES := -Iinclude -I. -I$(GEN)
CPPFLAGS_ALL = -D_GNU_SOURCE $(INCLUDES) $(PKG_CFLAGS) $(CPPFLAGS)
CFLAGS_ALL   = -std=gnu17 -fPIE -pthread $(WARNINGS) $(FLAGS_$(VARIANT)) $(CFLAGS)
LDFLAGS_ALL  = -pie -pthread -Wl,-z,relro,-z,now -Wl,--as-needed $(LINK_$(VARIANT)) $(LDFLAGS)
BANNED       := -include include/base/banned.h

# --- layers -----------------------------------------------------------------------------------
# One archive each. CHAIN_x is what x links with: an upward call is a link error.

LAYERS := base model priv-protocol priv db assets core http api server

SRC_base          := $(wildcard base/*.c)
SRC_model         := $(wildcard model/*.c)
SRC_priv-protocol := $(wildcard priv/protocol.c)
SRC_priv          := $(filter-out $(SRC_priv-protocol),$(wildcard priv/*.c))
SRC_db            := $(wildcard db/*.c)
SRC_core          := $(wildcard core/*.c core/*/*.c)
SRC_http          := $(wildcard http/*.c)
SRC_api           := $(wildcard api/*.c api/*/*.c)
SRC_server        := $(filter-out server/main.c,$(wildcard server/*.c))

CHAIN_base          := base
CHAIN_model         := model $(CHAIN_base)
CHAIN_priv-protocol := priv-protocol $(CHAIN_model)
CHAIN_priv          := priv $(CHAIN_priv-protocol)
CHAIN_db            := db $(CHAIN_model)
CHAIN_core          := core assets db $(CHAIN_priv-protocol)
CHAIN_http          := http $(CHAIN_core)
CHAIN_api           := api $(CHAIN_http)
CHAIN_server        := server api http priv $(CHAIN_core)

PKGS_base   := libsodium uuid
PKGS_priv   := libnvme blkid
PKGS_db     := sqlite3 zlib
PKGS_core   := libcurl libssl libcrypto jansson zlib snappy
PKGS_http   := libmicrohttpd gnutls zlib
PKGS_api    := jansson
PKGS_server := libcrypto

define layer_libs
LIBS_$(1) = $$(call pkg_flags,PKG_LIBS_$(1),--libs $(sort $(foreach l,$(CHAIN_$(1)),$(PKGS_$l)))) -lm
endef
$(foreach l,$(filter-out assets,$(LAYERS)),$(eval $(call layer_libs,$l)))

archives = $(foreach l,$(CHAIN_$(1)),$(OUT)/lib$l.a)
objects  = $(patsubst %.c,$(OUT)/obj/%.o,$(1))

# --- embedded files ---------------------------------------------------------------------------
# Each becomes asset_<base name with _ for other characters>[] and …_len, and a row in the table
# of include/base/asset.h under its path.

ASSETS := $(wildcard openapi.yaml core/sim/models/*.json web/*) \
	$(patsubst %,$(GEN)/openapi.json,$(wildcard openapi.yaml))
asset_c = $(GEN)/asset_$(subst -,_,$(subst .,_,$(notdir $(1)))).c
ASSETS_C  := $(foreach a,$(ASSETS),$(call asset_c,$a)) $(GEN)/asset_table.c
ASSETS_O  := $(patsubst $(GEN)/%.c,$(OUT)/obj/gen/%.o,$(ASSETS_C))

define asset_rule
$(call asset_c,$(1)): $(1) tools/embed.sh
	$$(call say,EMBED,$(1))
	$$(Q)tools/embed.sh file $(1) >$$@
endef
$(foreach a,$(ASSETS),$(eval $(call asset_rule,$a)))

$(GEN)/openapi.json: openapi.yaml tools/yaml2json.py | $(GEN)/.dir
	$(call say,JSON,$@)
	$(Q)$(PYTHON) tools/yaml2json.py $< >$@

# --- files written only when their text changes -------------------------------------------------

write_if_changed = mkdir -p $(@D); printf '%s\n' $(1) | cmp -s - $@ || printf '%s\n' $(1) >$@

$(OUT)/flags: FORCE
	@$(call write_if_changed,'$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL)')

$(GEN)/asset_table.list: FORCE
	@$(call write_if_changed,$(ASSETS) end)

$(GEN)/asset_table.c: $(GEN)/asset_table.list tools/embed.sh
	$(Q)tools/embed.sh table $(ASSETS) >$@

VERSION = $(shell git describe --always --dirty 2>/dev/null || echo unknown)
$(GEN)/version.h: FORCE
	@$(call write_if_changed,'#define DRIVEWATT_VERSION "$(VERSION)"')

$(GEN)/.dir:
	@mkdir -p $(@D)
	@touch $@
$(ASSETS_C): | $(GEN)/.dir

# --- compiling and linking ----------------------------------------------------------------------

.PHONY: all libs
all: $(BIN) ## the daemon (default)
libs: $(LAYERS:%=$(OUT)/lib%.a) ## one static archive a layer

$(OUT)/obj/%.o: %.c Makefile $(OUT)/flags | $(GEN)/version.h
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BANNED) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(OUT)/obj/gen/%.o: $(GEN)/%.c $(OUT)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

define archive_rule
OBJ_$(1) := $(if $(filter assets,$(1)),$(ASSETS_O),$(call objects,$(SRC_$(1))))
$(OUT)/lib$(1).list: FORCE
	@$$(call write_if_changed,$$(OBJ_$(1)) end)
$(OUT)/lib$(1).a: $$(OBJ_$(1)) $(OUT)/lib$(1).list
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && $(AR) rcs $$@ $$(OBJ_$(1))
endef
$(foreach l,$(LAYERS),$(eval $(call archive_rule,$l)))

$(BIN): $(OUT)/obj/server/main.o $(call archives,server)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_server)

# --- unit tests ---------------------------------------------------------------------------------

TEST_LAYERS := $(filter-out assets,$(LAYERS))
# tests/support/<layer>_*.c goes into that layer's tests alone: it may stand in for lower layers.
SUPPORT_of   = $(call objects,$(wildcard tests/support/$(1)_*.c))
SUPPORT_O   := $(filter-out $(foreach l,$(TEST_LAYERS),$(call SUPPORT_of,$l)),\
	$(call objects,$(wildcard tests/support/*.c)))
RESULTS     := $(OUT)/results

define unit_rules
UNIT_$(1) := $$(patsubst tests/%.c,$(OUT)/tests/%,$$(wildcard tests/unit/$(1)/test_*.c))
$$(UNIT_$(1)): $(OUT)/tests/%: $(OUT)/obj/tests/%.o $(call SUPPORT_of,$(1)) $(OUT)/libsupport.a \
		$(call archives,$(1))
	$$(call say,LD,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(CC) $$(LDFLAGS_ALL) -o $$@ $$^ -lcmocka $$(LIBS_$(1))
.PHONY: unit-$(1)
unit-$(1): $$(UNIT_$(1)) $(if $(filter server,$(1)),$(BIN))
	$$(Q)tools/run-unit.sh $(RESULTS)/unit-$(1) $$(UNIT_$(1))
endef
$(foreach l,$(TEST_LAYERS),$(eval $(call unit_rules,$l)))

$(OUT)/libsupport.a: $(SUPPORT_O)
	$(Q)rm -f $@ && $(AR) rcs $@ $(SUPPORT_O)

UNIT := $(foreach l,$(TEST_LAYERS),$(UNIT_$l))
.PHONY: unit
unit: $(UNIT) ## all unit tests (unit-<layer>: those of one layer)
	$(Q)tools/run-unit.sh $(RESULTS)/unit $(UNIT)

# --- tests on the running daemon ------------------------------------------------------------------

# The bed: made-up NVMe drives for the whole daemon. Without sanitizers, since it is preloaded
# before their runtimes.
BED   := $(OUT)/bed
BED_C := tests/support/nvme_model.c
BED_H := tests/support/nvme_model.h tests/support/bed/bed_state.h
BED_CFLAGS := -std=gnu17 -O1 -g -fPIC -pthread $(WARNINGS) -D_GNU_SOURCE -I.

$(BED)/nvme_shim.so $(BED)/bedctl: $(BED)/%: $(BED_C) $(BED_H) Makefile
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BED_CFLAGS) $(if $(filter %.so,$@),-shared) -o $@ $(filter %.c,$^)
$(BED)/nvme_shim.so: tests/support/bed/nvme_shim.c
$(BED)/bedctl: tests/support/bed/bedctl.c

# Fails calls of the daemon for memory and of its store. No sanitizer lets it have malloc.
$(BED)/fault_shim.so: tests/support/faults/fault_shim.c tests/support/faults/fault_plan.h Makefile
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BED_CFLAGS) -shared -o $@ $<

# promtool judges /metrics; a whole Prometheus and a VictoriaMetrics take in what remote write sends.
PROMETHEUS := $(BUILD)/prometheus
VICTORIA_METRICS := $(BUILD)/victoria-metrics
PEERS := $(PROMETHEUS)/usr/bin/promtool $(VICTORIA_METRICS)/usr/bin/victoria-metrics
$(PEERS): tools/unpack.sh
	$(call say,FETCH,$(@F))
	$(Q)tools/unpack.sh $(@D:/usr/bin=)
	$(Q)touch $@

.PHONY: bed http clients
bed: $(BED)/nvme_shim.so $(BED)/bedctl ## the made-up NVMe drives, see tests/support/bed/bed.sh
# They wait more than they compute: half as many again as there are processors.
HTTP_WORKERS ?= $(shell echo $$(($$(nproc) * 3 / 2)))
http: $(BIN) bed $(PEERS) ## tests of the REST face on the real binary (ARGS= for pytest)
	$(Q)DRIVEWATTD=$(abspath $(BIN)) BED=$(abspath $(BED)) VARIANT=$(VARIANT) \
		PROMETHEUS=$(abspath $(PROMETHEUS)) VICTORIA_METRICS=$(abspath $(VICTORIA_METRICS)) \
		tools/run-pytest.sh $(RESULTS)/http \
		$(PYTEST) -q -p no:cacheprovider -n $(HTTP_WORKERS) --dist loadfile tests/http $(ARGS)

clients: $(BIN) ## tests of what other programs do with the REST face, see deploy/
	$(Q)DRIVEWATTD=$(abspath $(BIN)) VARIANT=$(VARIANT) tools/run-pytest.sh $(RESULTS)/clients \
		$(PYTEST) -q -p no:cacheprovider tests/clients $(ARGS)

ROUNDS ?= 200
.PHONY: kill
kill: $(BIN) bed ## kill -9 under load, ROUNDS=200 times, SEED= for the same again
	$(Q)DRIVEWATTD=$(abspath $(BIN)) BED=$(abspath $(BED)) $(PYTHON) tools/kill.py $(ROUNDS) $(SEED)

FAULTS ?= 25
.PHONY: faults
faults: $(BIN) $(BED)/fault_shim.so ## the n-th call for memory or of the store fails, FAULTS=25 times, SEED=
	$(Q)DRIVEWATTD=$(abspath $(BIN)) BED=$(abspath $(BED)) FAULTS=$(FAULTS) SEED=$(SEED) \
		tools/run-pytest.sh $(RESULTS)/faults $(PYTEST) -q -p no:cacheprovider tests/faults $(ARGS)

SOAK_S ?= 300
.PHONY: soak
soak: $(BIN) ## 500 BMCs, 50 streams, queries, changes and runs for SOAK_S=300 seconds: nothing grows
	$(Q)DRIVEWATTD=$(abspath $(BIN)) SOAK_S=$(SOAK_S) \
		tools/run-pytest.sh $(RESULTS)/soak $(PYTEST) -q -s -p no:cacheprovider tests/soak $(ARGS)

# --- fuzzing --------------------------------------------------------------------------------------

FUZZ := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))
REPLAY := $(FUZZ:%=$(OUT)/replay/%)
FUZZERS := $(FUZZ:%=$(OUT)/fuzzers/%)

$(REPLAY): $(OUT)/replay/%: $(OUT)/obj/tests/fuzz/%.o $(OUT)/obj/tests/fuzz/support/replay_main.o \
		$(call archives,server)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_server)

$(FUZZERS): $(OUT)/fuzzers/%: $(OUT)/obj/tests/fuzz/%.o $(call archives,server)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ $(LIBS_server)

.PHONY: fuzz-replay fuzz fuzzers
fuzz-replay: $(REPLAY) ## feeds the kept inputs of tests/data/corpus to the parsers
	$(Q)tools/run-replay.sh $(RESULTS)/fuzz-replay $(REPLAY)

fuzzers: $(FUZZERS)
fuzz: ## fuzzes every parser for SECONDS=60 each (clang)
	$(Q)$(MAKE) --no-print-directory VARIANT=fuzz fuzzers
	$(Q)tools/run-fuzz.sh $(BUILD)/fuzz $(SECONDS) $(FUZZ)

# --- lint -----------------------------------------------------------------------------------------

C_SOURCES := $(foreach l,$(LAYERS),$(SRC_$l)) $(wildcard server/main.c)
C_TESTS   := $(wildcard tests/unit/*/*.c tests/support/*.[ch] tests/support/*/*.[ch] \
	tests/fuzz/*.c tests/fuzz/*/*.c)
C_HEADERS := $(wildcard include/*/*.h $(foreach l,base model priv db core core/* http api api/* server,$l/*.h))

.PHONY: lint lint-format lint-layers lint-cppcheck lint-tidy format
lint: lint-format lint-layers lint-cppcheck lint-tidy ## format, layers, cppcheck, clang-tidy
	$(Q)mkdir -p $(RESULTS) && echo '4 0' >$(RESULTS)/lint

lint-format:
	$(call say,FORMAT)
	$(Q)clang-format --dry-run -Werror $(C_SOURCES) $(C_TESTS) $(C_HEADERS)

lint-layers:
	$(call say,LAYERS)
	$(Q)$(PYTHON) tools/check-layers.py

lint-cppcheck: $(GEN)/version.h
	$(call say,CPPCHECK)
	$(Q)cppcheck --quiet --std=c11 --enable=warning,performance,portability --error-exitcode=1 \
		--inline-suppr --suppressions-list=tools/cppcheck.suppress \
		--library=tools/cppcheck.cfg -j2 \
		$(INCLUDES) -D_GNU_SOURCE -D__linux__ $(C_SOURCES)

# A file is looked at again when it or a header changed.
TIDY := $(patsubst %.c,$(BUILD)/tidy/%.ok,$(C_SOURCES))
TIDY_INCLUDE := -include tools/tidy.h
$(BUILD)/tidy/base/rc.ok: TIDY_INCLUDE := # defines what tidy.h wraps
lint-tidy: $(TIDY)
$(TIDY): $(BUILD)/tidy/%.ok: %.c .clang-tidy tools/tidy.h $(C_HEADERS) | $(GEN)/version.h
	$(call say,TIDY,$<)
	$(Q)clang-tidy --quiet $< -- $(TIDY_INCLUDE) $(CPPFLAGS_ALL) -std=gnu17 2>/dev/null
	@mkdir -p $(@D) && touch $@

format: ## clang-format over everything
	$(Q)clang-format -i $(C_SOURCES) $(C_TESTS) $(C_HEADERS)

# --- all tests ------------------------------------------------------------------------------------

# Suites of one variant, one after another; failures are counted and told at the end of each.
.PHONY: test test-plain test-asan test-tsan suites
SUITES := unit http fuzz-replay
suites:
	$(Q)for s in $(SUITES); do $(MAKE) --no-print-directory $$s || exit 1; done

test-plain: ## unit, http, fuzz-replay, faults and clients with the release build
	$(Q)$(MAKE) --no-print-directory VARIANT= SUITES='$(SUITES) faults clients' suites
test-asan: ## the same with AddressSanitizer and UBSan
	$(Q)$(MAKE) --no-print-directory VARIANT=asan suites
test-tsan: ## unit and http with ThreadSanitizer
	$(Q)$(MAKE) --no-print-directory VARIANT=tsan SUITES='unit http' suites

test: ## everything that must pass before a change goes in
	$(Q)tools/deps.sh test
	$(Q)rm -rf $(BUILD)/results $(BUILD)/*/results
	$(Q)for t in lint test-plain test-asan test-tsan; do \
		$(MAKE) --no-print-directory $$t || exit 1; done

# --- using it -------------------------------------------------------------------------------------

.PHONY: deps run demo bench clean help
deps: ## installs the Debian packages that are missing
	$(Q)tools/deps.sh test

run: ## builds and starts the daemon (LISTEN=, DATA_DIR=, ARGS= for more flags)
	@tools/run.sh announce
	$(Q)tools/deps.sh run
	$(Q)$(MAKE) --no-print-directory all
	$(Q)DRIVEWATTD=$(abspath $(BIN)) exec tools/run.sh serve $(ARGS)

demo: ## starts the daemon with simulated drives and shows what it can do
	$(Q)tools/deps.sh run
	$(Q)$(MAKE) --no-print-directory all
	$(Q)DRIVEWATTD=$(abspath $(BIN)) $(PYTHON) tools/demo.py $(ARGS)

bench: $(BIN) bed ## measures the daemon; figures go into docs/ (ARGS="part … --quick --json FILE")
	$(Q)DRIVEWATTD=$(abspath $(BIN)) BED=$(abspath $(BED)) tools/bench.sh $(ARGS)

include deploy/install.mk
include tests/vm/vm.mk

clean: ## removes what was built
	rm -rf $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile deploy/install.mk tests/vm/vm.mk
	@echo '  Variables: BUILD=dir VARIANT=asan|tsan|cov CC=clang WERROR=0 V=1'

-include $(shell [ -d $(OUT)/obj ] && find $(OUT)/obj -name '*.d')
