# Tests of the daemon in a machine of its own, which QEMU emulates; included by the Makefile.

VM          := $(OUT)/vm
VM_PACKAGES := $(BUILD)/vm/packages
VM_PROGRAMS  = $(BIN) /usr/bin/fio $(addprefix /usr/sbin/,nvme dmsetup lvm mdadm)
VM_SECONDS  ?= 900

$(VM_PACKAGES)/vmlinuz: tools/vm-packages.sh
	$(call say,FETCH,'kernel and busybox')
	$(Q)tools/vm-packages.sh $(VM_PACKAGES)

$(VM)/initramfs.cpio: $(VM_PACKAGES)/vmlinuz $(BIN) tests/vm/init tools/vm-initramfs.sh tests/vm/vm.mk
	$(call say,PACK,$@)
	@mkdir -p $(@D)
	$(Q)tools/vm-initramfs.sh $(VM_PACKAGES) $@ $(VM_PROGRAMS)

.PHONY: vm test-vm
vm: $(VM)/initramfs.cpio
	$(Q)VM=$(abspath $(VM)) VM_PACKAGES=$(abspath $(VM_PACKAGES)) VARIANT=$(VARIANT) \
		DRIVEWATTD=$(abspath $(BIN)) tools/run-pytest.sh $(RESULTS)/vm \
		timeout -k 10 $(VM_SECONDS) $(PYTEST) -q -p no:cacheprovider tests/vm $(ARGS)

test-vm: ## real NVMe drives and kernel in an emulated machine (ARGS= for pytest)
	$(Q)tools/deps.sh vm
	$(Q)$(MAKE) --no-print-directory vm
