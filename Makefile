# A thin front to CMake. `make demo` and `make test` are all that a first visit needs; both install missing Debian
# packages first and say so (tools/setup.sh).

BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
SOURCES = $(shell find cli examples include src tests tools -name '*.[ch]')

.PHONY: all configure everything demo test test-oracle install format clean

# The program, the libraries and the tool that writes random models.
all: configure
	cmake --build $(BUILD) -j $(JOBS) --target qvl qvl_shared qvl_static random_model

# Those and the tests.
everything: configure
	cmake --build $(BUILD) -j $(JOBS)

# Warnings are errors in the tests and the CI; a plain `make` with another compiler should not stop at one.
configure:
	cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(if $(WERROR),-DQVL_WERROR=ON)

demo:
	tools/setup.sh
	@start=$$(date +%s); $(MAKE) --no-print-directory all && echo "built in $$(($$(date +%s) - start)) s"
	@tools/demo.sh $(BUILD)/qvl

test:
	tools/setup.sh
	$(MAKE) --no-print-directory everything WERROR=1
	ctest --test-dir $(BUILD) -L offline --output-on-failure -j $(JOBS)

# Compares with the Python references, live. Makes their environment in a cache folder on first use.
test-oracle:
	tools/setup.sh oracle
	$(MAKE) --no-print-directory all
	ctest --test-dir $(BUILD) -L oracle --output-on-failure

install: all
	cmake --install $(BUILD)

format:
	clang-format -i $(SOURCES)

clean:
	rm -rf $(BUILD)
