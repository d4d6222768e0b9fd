# Installing and packaging; included by the Makefile. What operators read is made from
# docs/configuration.md, which a unit test holds to the daemon's own table of keys.

PREFIX     ?= /usr/local
SYSCONFDIR ?= /etc

SBINDIR       = $(PREFIX)/sbin
MANDIR        = $(PREFIX)/share/man
DOCDIR        = $(PREFIX)/share/doc/drivewatt
COMPLETIONDIR = $(PREFIX)/share/bash-completion/completions
UNITDIR       = $(PREFIX)/lib/systemd/system
SYSUSERSDIR   = $(PREFIX)/lib/sysusers.d
CONFDIR       = $(SYSCONFDIR)/drivewatt

DEPLOY := $(BUILD)/deploy
MADE   := $(addprefix $(DEPLOY)/,drivewattd.8 drivewatt.conf.5 drivewatt.conf completion.bash)

# Each @FORM@ line of the template becomes that form of the table of keys.
define fill_template
	$(call say,MAKE,$@)
	@mkdir -p $(@D)
	$(Q)tools/fill.sh $< docs/configuration.md '$(VERSION)' >$@
endef

$(DEPLOY)/%: deploy/man/%.in docs/configuration.md deploy/manual.awk tools/fill.sh $(GEN)/version.h
	$(fill_template)
$(DEPLOY)/%: deploy/%.in docs/configuration.md deploy/manual.awk tools/fill.sh $(GEN)/version.h
	$(fill_template)

# An existing configuration is the operator's.
.PHONY: install uninstall deb test-deb test-dockerfile
install: $(BIN) $(MADE) ## installs below DESTDIR and PREFIX=/usr/local, configuration below SYSCONFDIR
	install -D -m 755 $(BIN) $(DESTDIR)$(SBINDIR)/drivewattd
	install -D -m 644 $(DEPLOY)/drivewattd.8 $(DESTDIR)$(MANDIR)/man8/drivewattd.8
	install -D -m 644 $(DEPLOY)/drivewatt.conf.5 $(DESTDIR)$(MANDIR)/man5/drivewatt.conf.5
	install -D -m 644 $(DEPLOY)/completion.bash $(DESTDIR)$(COMPLETIONDIR)/drivewattd
	install -D -m 644 deploy/drivewatt.sysusers $(DESTDIR)$(SYSUSERSDIR)/drivewatt.conf
	install -D -m 644 deploy/drivewattd.service $(DESTDIR)$(UNITDIR)/drivewattd.service
	sed -i 's|/usr/sbin|$(SBINDIR)|; s|/etc/|$(SYSCONFDIR)/|' $(DESTDIR)$(UNITDIR)/drivewattd.service
	install -D -m 644 -t $(DESTDIR)$(DOCDIR) README.md docs/*.md openapi.yaml \
		deploy/prometheus/*.yml deploy/grafana/*.json
	[ -e $(DESTDIR)$(CONFDIR)/drivewatt.conf ] || \
		install -D -m 644 $(DEPLOY)/drivewatt.conf $(DESTDIR)$(CONFDIR)/drivewatt.conf

uninstall: ## removes what install brought, but for the configuration
	rm -f $(DESTDIR)$(SBINDIR)/drivewattd $(DESTDIR)$(COMPLETIONDIR)/drivewattd \
		$(DESTDIR)$(MANDIR)/man8/drivewattd.8 $(DESTDIR)$(MANDIR)/man5/drivewatt.conf.5 \
		$(DESTDIR)$(SYSUSERSDIR)/drivewatt.conf $(DESTDIR)$(UNITDIR)/drivewattd.service
	rm -rf $(DESTDIR)$(DOCDIR)

deb: ## a Debian package in build/ (DEB_VERSION=)
	$(Q)tools/deps.sh package
	$(Q)tools/make-deb.sh $(BUILD) $(DEB_VERSION)

test-deb: ## installs, upgrades, removes and purges the package under systemd (root)
	$(Q)tools/deps.sh package-test
	$(Q)tools/test-deb.sh $(BUILD)

test-dockerfile: ## carries out the steps of deploy/Dockerfile without a container engine (root)
	$(Q)tools/deps.sh package-test
	$(Q)tools/prove-dockerfile.sh $(BUILD)
