# Needs Python >= 3.10 with venv, and make; everything else is installed into $(VENV).

PYTHON ?= python3
ROS_DISTRO ?= jazzy
WORKERS ?= 2
NODE_WORKERS ?= 3

# ROS 2 is the one that is sourced, where this Python can import it; elsewhere it comes from wheels (Linux, x86-64).
ifndef ROS
ROS := $(if $(AMENT_PREFIX_PATH),$(shell $(PYTHON) -c 'import rclpy; print("sourced")' 2>/dev/null))
ROS := $(or $(ROS),wheels)
endif

ifeq ($(ROS),sourced)
VENV ?= .venv-$(ROS_DISTRO)-sourced
VENV_OPTIONS := --system-site-packages
# Its messages are compiled for its numpy; its launch_testing breaks pytest 9. Tests skip where a reference tool is missing.
REQUIREMENTS := $(shell $(PYTHON) -c 'import numpy; print("numpy==" + numpy.__version__)') 'pytest<9'
TEST_EXTRAS := sim,test
else
VENV ?= .venv-$(ROS_DISTRO)
MESSAGES := diagnostic geometry lifecycle sensor std trajectory visualization
REQUIREMENTS := 'ros-$(ROS_DISTRO)-rclpy[fastrtps]' ros-$(ROS_DISTRO)-std-srvs $(MESSAGES:%=ros-$(ROS_DISTRO)-%-msgs)
TEST_EXTRAS := sim,test,reference
export AMENT_PREFIX_PATH := $(abspath $(VENV))
unexport PYTHONPATH LD_LIBRARY_PATH RMW_IMPLEMENTATION
endif

# A robot may listen on the caller's domain: what runs here stays on this machine, on a domain that it chooses itself.
unexport ROS_DOMAIN_ID
export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
unexport ROS_LOCALHOST_ONLY ROS_STATIC_PEERS ROS_DISCOVERY_SERVER

# Without bytecode each of the many processes would compile the package anew, which takes a second.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check $(CONSTRAINTS:%=--constraint %)

.PHONY: help demo test pytest test-slow test-oldest style lint docs changelog clean

help:
	@echo 'make demo          an arm sags, is identified, floats and is led by hand; its links, load and sensors are found; a report in 4 minutes'
	@echo 'make test          style and tests'
	@echo 'make test-slow     tests that take long: statistics, real recordings, searches'
	@echo 'make test-oldest   tests on the oldest supported numpy, scipy, matplotlib (PYTHON 3.10 to 3.12)'
	@echo 'make style         ruff, import-linter'
	@echo 'make lint          style and mypy'
	@echo 'make docs          docs/parameters.md, the floors of docs/architecture.md'
	@echo 'make changelog     CHANGELOG.rst, for a release with bloom'
	@echo 'make clean         remove what the other targets made'
	@echo
	@echo 'Variables: PYTHON=$(PYTHON)  ROS_DISTRO=$(ROS_DISTRO)  ROS=$(ROS) (sourced or wheels)  WORKERS=$(WORKERS)  DOMAIN=1..100 (of the demo; else one that is free)'

demo: $(VENV)/demo.installed
	$(BIN)/dynid demo $(if $(DOMAIN),--domain $(DOMAIN)) $(ARGS)

test: style pytest

# Nodes run in real time and wait more than they work, each process on a ROS domain of its own (the plugin of Hypothesis,
# which they do not use, takes each process two seconds). Numerics take what the nodes leave, and show theirs at the end.
# A node test that fails then runs once more, alone: its failure is shown, and so is whether the load alone explains it.
NUMERICS := --numprocesses $(WORKERS) --dist worksteal -m 'not slow' --ignore test/nodes --ignore test/launch
# glibc keeps the memory of large arrays for the next ones: half of the page faults, some 4 % of the time.
ALLOCATOR := MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_=1073741824
NODE_CHOICE := -p no:hypothesispytest -o cache_dir=$(VENV)/nodes -m 'not slow' test/nodes test/launch
NODE_TESTS := --numprocesses $(NODE_WORKERS) --dist loadfile $(NODE_CHOICE)

pytest: $(VENV)/test.installed
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	$(ALLOCATOR) nice -n 19 $(BIN)/python -m pytest $(NUMERICS) >$(VENV)/numerics.log 2>&1 & \
	$(BIN)/python -m pytest $(NODE_TESTS); nodes=$$?; \
	wait $$!; numerics=$$?; cat $(VENV)/numerics.log; \
	if [ $$nodes -eq 1 ]; then \
		echo 'Node tests failed beside the numerics (see above). Once more, alone:'; \
		$(BIN)/python -m pytest --last-failed $(NODE_CHOICE); nodes=$$?; \
	fi; \
	exit $$((nodes | numerics))
endif

# Statistics of many simulations, long recordings of real robots, large searches, the demo, each way to install.
test-slow: $(VENV)/test.installed $(VENV)/builders
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --timeout 900 -m slow --ignore test/nodes
	$(BIN)/python -m pytest -m slow test/nodes

test-oldest:
	$(MAKE) pytest ROS=wheels VENV=.venv-$(ROS_DISTRO)-oldest CONSTRAINTS=constraints-oldest.txt

style: $(VENV)/test.installed
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/lint-imports --no-cache --no-logo

lint: style
	$(BIN)/python -m mypy dynid_ros

docs: $(VENV)/test.installed
	$(BIN)/python docs/generate_parameters.py
	$(BIN)/python docs/draw_floors.py

changelog: $(VENV)/test.installed
	$(BIN)/python docs/generate_changelog.py

clean:
	rm -rf .venv-* build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -exec rm -rf {} +

# The pip of Python 3.10 needs minutes to resolve the reference tools.
$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python >= 3.10 is needed; choose one with PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV_OPTIONS) $(VENV)
	$(INSTALL) --upgrade pip
	@touch $@

# Apart from what runs the tests: colcon brings plugins of pytest.
$(VENV)/builders: | $(VENV)/created
	rm -rf $@.new
	$(INSTALL) --target $@.new colcon-common-extensions uv
	mv $@.new $@

$(VENV)/demo.installed: EXTRAS := sim
$(VENV)/test.installed: EXTRAS := $(TEST_EXTRAS)
$(VENV)/%.installed: setup.py Makefile $(CONSTRAINTS) | $(VENV)/created
	@echo 'Installing into $(VENV); this takes a minute, once'
	$(INSTALL) $(REQUIREMENTS) --editable '.[$(EXTRAS)]'
	@touch $@
