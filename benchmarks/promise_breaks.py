"""For each test that docs/promises.md names, a change of the code that breaks what it promises."""

from typing import NamedTuple

Edit = tuple[str, str, str]
"""Function, class or constant of dynid_ros (`file:name` where several files have it), text in it, text in place."""


class Break(NamedTuple):
    """A test, in words what is broken, and the edits that break it."""

    test: str
    what: str
    edits: tuple[Edit, ...]


NOT_FINITE = ("JointOrder.pick", "            if not math.isfinite(value):", "            if False:")
UNCHECKED = ("GravityCompensator.update", "problem = check.problem(position, self.joints)", 'problem = ""')
NOT_MISSING = ("JointOrder._find", "        if missing:", "        if False:")
NOT_TWICE = ("JointOrder._find", "        if twice:", "        if False:")
OLD_ORDER = ("JointOrder.pick", "if message.name != self._names:", "if self._names is None:")
NEVER_OLD = ("JointStateCheck.stale", "if age <= timeout:", "if age <= 1e9:")
SOON_OLD = ("JointStateCheck.stale", "if age <= timeout:", "if age <= 0.05:")
NO_JUMP = ("JointStateCheck.jump", "if abs(value - before) > velocity * span:", "if False:")
STAMPS_ASCEND = (
    "JointStateInput.is_news",
    "if stamp is not None and stamp == self.stamp:",
    "if stamp is not None and self.stamp is not None and stamp <= self.stamp:",
)
WRITABLE = ("NodeParameter.descriptor", "read_only=not (self.adjustable or self.configured)", "read_only=False")
UNEXPECTED = ("_refusals", "except Exception as error:  # a fault", "except KeyError as error:  # a fault")
FOLLOWED = ("MotionInProgress.check", "if not excess[i] <= 0:", "if False:")
SOON_STALE = ("Arm._watch_motion", "elif age > self._stale_after:", "elif age > 0.05:")
NO_XML_ERROR = ("xml_root", "except ET.ParseError as error:", "except KeyError as error:")


ALONE = (
    "CommandTopic.others",
    "        if self._node.count_publishers(self.name) <= int(self.is_open):",
    "        if True:",
)


def _by_action() -> list[Break]:
    here = "test_trajectory_action.py::test_"
    there = "[stand-in]"
    return [
        Break(
            f"{here}a_goal_that_is_rejected_is_told{there}",
            "rejections are not looked at",
            (("TrajectoryAction.failure", "and not answer.accepted:", "and False:"),),
        ),
        Break(
            f"{here}a_goal_that_is_aborted_is_told_with_its_reason{there}",
            "its result is not asked for",
            (("TrajectoryAction._on_answer", "        if handle is None or not handle.accepted:", "        if True:"),),
        ),
        Break(
            f"{here}a_goal_of_another_client_takes_the_arm_and_is_left_alone{there}",
            "others' goals are not told from ours",
            (("TrajectoryAction._is_taken_over", "and not goal.startswith(OURS)", "and False"),),
        ),
        Break(
            f"{here}a_server_that_is_gone_is_told{there}",
            "it is not looked for",
            (("TrajectoryAction.listeners", "int(self._client.server_is_ready())", "1"),),
        ),
        Break(
            f"{here}a_stop_is_a_goal_along_the_path{there}",
            "a stop is a cancellation",
            (("TrajectoryAction.look", "        if self._is_accepted:", "        if False:"),),
        ),
        Break(
            f"{here}where_a_stop_is_not_taken_the_goal_is_cancelled{there}",
            "nothing is cancelled",
            (("TrajectoryAction.look", "self._replaced.cancel_goal_async()", "pass"),),
        ),
        Break(
            f"{here}pieces_are_goals_that_replace_each_other{there}",
            "a motion is one goal",
            (("MotionController.handover", "        if answer is None or", "        if True or"),),
        ),
        Break(
            f"{here}where_no_more_goals_come_the_arm_rests_within_two_seconds{there}",
            "a piece is all that is left of the motion",
            (("piece", "    ending = end + SHORTEST_REMAINDER >= motion.duration", "    ending = True"),),
        ),
        Break(
            f"{here}a_stop_of_a_goal_that_another_process_sent_replaces_it{there}",
            "the arm is not looked at",
            (("Arm.brake", "        if not speeds:", "        if True:"),),
        ),
        Break(
            f"{here}where_that_stop_is_not_taken_all_goals_are_cancelled{there}",
            "nothing is cancelled",
            (("Arm._taken_or_cancelled", "            self.action.cancel_all()", "            pass"),),
        ),
        Break(
            f"{here}motions_are_goals_that_leave_nothing_behind{there}",
            "tolerances stay as they are",
            (("trajectory_action:ERASED", "-1.0", "0.0"),),
        ),
        Break(
            "test_controllers.py::test_goals_that_leave_nothing_behind_are_known",
            "all goals are alike",
            (("ControllerWatch._on_goals", "not all(goal.startswith(OURS) for goal in new)", "True"),),
        ),
    ]


def _writers() -> list[Break]:
    here = "test_promises_writers.py::"
    refused = "beside_another_publisher_is_refused"
    disagree = here + "test_two_drivers_that_disagree_are_refused_at_"
    alone = "others are not looked for"
    return [
        Break(f"{here}test_enable_{refused}[same type]", alone, (ALONE,)),
        Break(
            f"{here}test_enable_{refused}[another type]",
            "only publishers of our type count",
            (
                (
                    "CommandTopic.others",
                    "        if not publishers:",
                    "        if this_publisher[1] not in [kind for _, kind in publishers]:",
                ),
            ),
        ),
        Break(f"{here}test_start_{refused}[same type]", alone, (ALONE,)),
        Break(
            f"{here}test_start_{refused}[another type]",
            "only publishers of our type count",
            (
                (
                    "CommandTopic.others",
                    "        if not publishers:",
                    "        if this_publisher[1] not in [kind for _, kind in publishers]:",
                ),
            ),
        ),
        Break(here + "test_of_two_compensations_one_may_command", alone, (ALONE,)),
        Break(
            here + "test_another_publisher_that_is_silent_is_told_of_while_enabled",
            "others are not looked for",
            (("CompensationStatus._warning", "return silent or commands.others or", "return silent or"),),
        ),
        Break(
            here + "test_another_publisher_that_commands_is_a_fault",
            "their messages are not counted",
            (("CompensationLoop.watch", "commands.topic.count_foreign()) >", "commands.topic.foreign) >"),),
        ),
        Break(
            here + "test_after_one_stray_message_the_arm_is_held_and_after_more_it_fades",
            "the first one lets the arm fall",
            (("CompensationLoop.watch", "fade=self._foreign > 0)", "fade=True)"),),
        ),
        Break(
            here + "test_another_publisher_while_the_arm_moves_brings_it_to_rest",
            "others are looked for at first alone",
            (("Arm._watch_motion", "elif (others := self._commands.others) and", "elif (others := '') and"),),
        ),
        Break(
            here + "test_enabled_has_a_publisher_and_disabled_none",
            "the publisher stays",
            (
                (
                    "CompensationLoop._leave",
                    "or topic.acknowledged():\n            topic.close()",
                    "or topic.acknowledged():\n            pass",
                ),
            ),
        ),
        Break(
            here + "test_a_motion_has_a_publisher_and_its_end_none",
            "the publisher stays",
            (("Arm._watch_motion", "self._node.executor.create_task(self._release)", "pass"),),
        ),
        Break(
            here + "test_a_killed_one_is_named_until_the_middleware_finds_out",
            "the refusal does not say of a kill",
            (("CommandTopic.others", '(one that was "\n            f"killed counts', '("\n            f"counts'),),
        ),
        Break(
            disagree + "enable",
            "jumps are looked at while enabled alone",
            (("GravityCompensator.update", "elif jump:", "elif False:"),),
        ),
        Break(
            disagree + "start",
            "joint states are not compared",
            (("Arm._look_at", "if self._compared and (found", "if False and (found"),),
        ),
    ]


def _models() -> list[Break]:
    here = "test_promises_models.py::"
    return [
        Break(
            here + "test_a_reload_that_is_far_off_the_model_in_force_is_refused",
            "changes are not looked at",
            (("ModelChange.check_change", "if change[i] <= allowed[i] or", "if True or"),),
        ),
        Break(
            here + "test_a_reload_near_the_model_in_force_comes_in_without_a_step",
            "no change is allowed",
            (("ModelChange.check_change", "if change[i] <= allowed[i] or", "if False or"),),
        ),
        Break(
            here + "test_a_model_far_off_the_urdf_is_refused_at_reload_and_enable",
            "models are looked at when the arm is enabled alone",
            (
                (
                    "CompensationLoad.replace",
                    "            model.change.check_arm(gravity, measured)",
                    "            pass",
                ),
            ),
        ),
        Break(
            here + "test_enable_refuses_a_model_far_off_the_urdf",
            "models are looked at when they are reloaded alone",
            (("CompensationLoop.enable", "            self._check_model()\n", ""),),
        ),
        Break(
            here + "test_enable_refuses_a_model_that_the_holding_effort_contradicts",
            "no effort is certain",
            (("ModelChange._agrees", "if not measured.certain:", "if True:"),),
        ),
        Break(
            here + "test_a_model_that_the_holding_effort_confirms_is_taken_though_the_urdf_is_wrong",
            "the URDF is right in any case",
            (("ModelChange._refutes_urdf", "return bool(np.all(nearer | ~beyond))", "return False"),),
        ),
        Break(
            here + "test_a_load_is_taken_while_enabled_and_put_down_again",
            "loads are not taken",
            (("CompensationLoad._on_message", "            self.take(load)\n", ""),),
        ),
        Break(
            here + "test_a_load_as_a_parameter_is_accepted_or_refused_with_the_reason",
            "the parameter is not looked at",
            (("GravityCompensation._adjust", "loop.announce(parameter_load(settings, arm.robot.tip))", "pass"),),
        ),
        Break(
            here + "test_the_load_in_force_is_published_and_a_refused_one_is_not",
            "it is published at the start alone",
            (("CompensationLoad._use", "        self._publish()\n", ""),),
        ),
        Break(
            here + "test_a_load_that_the_arm_cannot_carry_in_its_pose_is_refused",
            "the pose is not looked at",
            (("ModelChange.check_load", "if abs(torque) > limit:", "if False:"),),
        ),
        Break(
            here + "test_a_load_that_no_joint_could_hold_is_refused",
            "loads are not held against effort limits",
            (("ModelChange.check_load", "            if torque > limit:", "            if False:"),),
        ),
    ]


def _motion() -> list[Break]:
    floating = "test_floating_arm.py::"
    return [
        Break(
            floating + "test_after_a_fault_the_arm_is_held_and_then_lowered",
            "it is lowered at once",
            (("Descent.pace", "if time < self.hold_until:", "if False:"),),
        ),
        Break(
            floating + "test_where_the_pose_is_not_known_the_torque_fades",
            "the torque goes on following the pose",
            (("GravityCompensator.fault", "self.interrupt(time, reason, fade=True)", "self.interrupt(time, reason)"),),
        ),
        Break(
            floating + "test_disabled_the_arm_is_lowered_and_can_be_enabled_on_the_way",
            "the torque ramps out whatever the arm does",
            (("GravityCompensator.disable", "            self._descend(time, 0.0)", "            pass"),),
        ),
        Break(
            floating + "test_the_end_of_the_process_lowers_the_arm_in_time",
            "the torque fades at once",
            (("GravityCompensator.stop", "if self._following and within > 0.0 and", "if False and"),),
        ),
        Break(
            floating + "test_a_wrong_model_is_noticed_where_the_arm_is_let_go",
            "the activation of the controller is not watched",
            (
                (
                    "GravityCompensator.released",
                    "self._watch_change([0.0] * len(self.joints.names), released=True)",
                    "pass",
                ),
            ),
        ),
        Break(
            floating + "test_at_a_low_scale_the_arm_sinks_slowly",
            "no joint sinks by itself",
            (
                (
                    "MotionWatch._end_probe",
                    "elif suspicion is Verdict.SINKS and spring_share > MIN_CARRIED:",
                    "elif False:",
                ),
            ),
        ),
        Break(
            floating + "test_a_change_that_lifts_the_arm_is_taken_back",
            "changes are not watched",
            (("GravityCompensator._change", "            self._watch_change(old)", "            pass"),),
        ),
        Break(
            floating + "test_an_arm_faster_than_its_limit_is_braked",
            "nothing brakes",
            (("JointBrake.torque", "excess = max(abs(v) - free, 0.0)", "excess = 0.0"),),
        ),
        Break(
            floating + "test_an_arm_that_a_hand_leads_is_not_suspected",
            "one departure is enough",
            (
                ("MIN_DEPARTURES", "MIN_DEPARTURES = 3", "MIN_DEPARTURES = 1"),
                ("MIN_SINKINGS", "MIN_SINKINGS = 3", "MIN_SINKINGS = 1"),
                ("MIN_CARRIED", "MIN_CARRIED = 0.2", "MIN_CARRIED = 0.0"),
            ),
        ),
        Break(
            floating + "test_after_a_gap_of_joint_states_the_torque_does_not_catch_up_at_once",
            "all of the gap counts",
            (("TorqueRamp.elapsed", "return min(max(time - self._time, 0.0), longest)", "return time - self._time"),),
        ),
        Break(
            floating + "test_enabled_again_while_it_ramps_out_the_measured_pose_is_held",
            "the pose of before is held",
            (
                (
                    "GravityCompensator.enable",
                    "self._feedback.hold(self.position if desired is None else desired)",
                    "self._feedback.hold(self.desired or self.position)",
                ),
            ),
        ),
    ]


def _compensation() -> list[Break]:
    here = "test_promises_gravity_compensation.py::"
    fades = here + "test_a_fault_fades_the_torque_and_waits_for_enable"
    same = here + "test_what_is_no_fault_changes_nothing"
    node = "test_gravity_compensation_node.py::"
    return [
        Break(f"{fades}[driver stops]", "no state is ever too old", (NEVER_OLD,)),
        Break(
            f"{fades}[stamps stand still]",
            "a state sent again is news",
            (("JointStateInput.is_news", "if stamp is not None and stamp == self.stamp:", "if False:"),),
        ),
        Break(f"{fades}[nan]", "positions are not looked at", (NOT_FINITE, UNCHECKED)),
        Break(f"{fades}[infinite]", "positions are not looked at", (NOT_FINITE, UNCHECKED)),
        Break(
            f"{fades}[beyond limits]",
            "limits are not looked at",
            (("JointStateCheck.problem", "if not lower <= value <= upper:", "if False:"),),
        ),
        Break(f"{fades}[encoder jumps]", "jumps are not looked at", (NO_JUMP,)),
        Break(
            f"{fades}[encoder jumps with the clock]",
            "stamps alone say how long a jump took",
            (
                (
                    "JointStateCheck.jump",
                    "span = min(span, stamp - self._stamp + STAMP_JITTER_S)",
                    "span = stamp - self._stamp + STAMP_JITTER_S",
                ),
            ),
        ),
        Break(f"{fades}[joint missing]", "missing joints are not looked for", (NOT_MISSING,)),
        Break(
            f"{fades}[position short]",
            "numbers of values are not compared",
            (("JointOrder.pick", "if len(values) != len(message.name):", "if False:"),),
        ),
        Break(f"{fades}[joint twice]", "joints that come twice are not looked for", (NOT_TWICE,)),
        Break(f"{fades}[two drivers]", "jumps are not looked at", (NO_JUMP,)),
        Break(
            f"{fades}[controller gone]",
            "listeners are not looked at",
            (
                (
                    "CompensationLoop.watch",
                    "            if not self.has_listener:\n                self.compensator",
                    "            if False:\n                self.compensator",
                ),
            ),
        ),
        Break(
            here + "test_enable_without_a_controller_is_refused",
            "listeners are not looked at",
            (
                ("CompensationLoop.prepare", "if not self.has_listener or topic.others:", "if topic.others:"),
                (
                    "CompensationLoop.enable",
                    "            if not self.has_listener:\n                raise",
                    "            if False:\n                raise",
                ),
            ),
        ),
        Break(
            here + "test_after_a_fault_enable_ramps_in_anew",
            "enabled whatever the driver does",
            (
                (
                    "GravityCompensator.enable",
                    "check.unfit or check.stale(time, self._timing.timeout) or check.alternating(time):",
                    "check.alternating(time):",
                ),
            ),
        ),
        Break(here + "test_a_short_silence_is_nothing", "states are old after 50 ms", (SOON_OLD,)),
        Break(f"{same}[reorder]", "the first order of the names holds", (OLD_ORDER,)),
        Break(f"{same}[later]", "earlier stamps are no news", (STAMPS_ASCEND,)),
        Break(f"{same}[earlier]", "earlier stamps are no news", (STAMPS_ASCEND,)),
        Break(
            f"{same}[unstamped]",
            "a stamp of zero is a time",
            (
                (
                    "JointStateInput.is_news",
                    "1e-9 * nanoseconds(message.header) or None",
                    "1e-9 * nanoseconds(message.header)",
                ),
            ),
        ),
        Break(here + "test_two_drivers_that_agree_are_as_one", "the first order of the names holds", (OLD_ORDER,)),
        Break(here + "test_slow_and_fast_joint_states", "states are old after 50 ms", (SOON_OLD,)),
        Break(
            here + "test_bursts_of_joint_states_are_passed_over_for_the_newest",
            "the oldest is acted on",
            (("CompensationLoop._act_on", "else messages[-1:]", "else messages[:1]"),),
        ),
        Break(
            here + "test_simulated_time_may_stand_still_and_jump",
            "the watch is by the node's clock",
            (
                (
                    "CompensationLoop.look",
                    "        if self.running:\n",
                    "        if self.running and self._node.get_clock().now().nanoseconds:\n",
                ),
            ),
        ),
        Break(
            node + "test_a_load_that_cannot_be_meant_is_refused_and_the_one_in_force_stays",
            "stamps of loads may be in the future",
            (("published_load", "if stamp and ahead > MAX_CLOCK_DIFFERENCE_NS:", "if False:"),),
        ),
        Break(
            node + "test_a_load_stays_when_its_publisher_is_gone_and_comes_back_after_a_new_configuration",
            "the load is not latched",
            (("CompensationLoad.__init__", "self._on_message, LATCHED)", "self._on_message, 10)"),),
        ),
        Break(
            node + "test_measured_links_are_counted_with_and_springs_where_they_fall_silent",
            "links are never too old",
            (("CompensationLinks._doubt", "if age > self.timeout:", "if False:"),),
        ),
        Break(
            here + "test_parameters_that_are_set_while_it_floats_make_no_step",
            "a gain that is set pulls to where the arm was enabled",
            (("JointFeedback.stiffen", "if new and not old:", "if False:"),),
        ),
        Break(
            here + "test_parameters_out_of_range_are_refused_while_it_floats",
            "limits may be below the torque that acts",
            (("GravityCompensator.adjust", "if abs(torque) > limit:", "if False:"),),
        ),
        Break(
            here + "test_a_parameter_of_the_model_waits_for_reload_or_configuration",
            "a configuration reads nothing anew",
            (("GravityCompensation._configure", "        renew(self, self._settings, PARAMETERS)\n", ""),),
        ),
        Break(
            "test_parameters.py::test_a_name_that_does_not_exist_is_refused",
            "unknown names are passed over",
            (("_check_names", "            raise DynidError(", "            str("),),
        ),
        Break(
            "test_process.py::test_a_parameter_file_that_cannot_be_read_is_one_line",
            "a file that cannot be read ends with a traceback",
            (("ros_process", "    except rclpy_implementation.RCLError as error:", "    except KeyError as error:"),),
        ),
        Break(
            "test_gravity_compensation_node.py::test_a_value_out_of_range_is_refused_at_the_start",
            "ranges are not looked at",
            (("NodeParameter.checked", "if not all(map(self._holds, each)):", "if False:"),),
        ),
        Break(
            here + "test_services_in_parallel_are_all_answered",
            "an end of the ramp that is asked for refuses the next call",
            (
                (
                    "GravityCompensator.enable",
                    "if self._enabled:\n            return",
                    "if self._enabled:\n            raise ControlError('already')",
                ),
            ),
        ),
        Break(
            node + "test_a_slow_reload_does_not_starve_the_control",
            "nothing is served while the file is read",
            (("GravityCompensation._reload", "self._serve_until(loading.done)", "pass"),),
        ),
        Break(
            node + "test_reload_of_a_bad_file_leaves_the_old_model_in_force",
            "a bad file disables",
            (
                (
                    "GravityCompensation._reload",
                    'raise ControlError(f"the model in force stays: {error}") from error',
                    "loop.disable()",
                ),
            ),
        ),
        Break(
            here + "test_a_malformed_urdf_is_told_and_a_good_one_then_starts",
            "autostart tries once",
            (("GravityCompensation._start_again", "if self._refusal and self._settings.autostart:", "if False:"),),
        ),
        Break(
            here + "test_another_urdf_while_active_changes_nothing",
            "another URDF goes unnoticed",
            (("CompensationModel._on_description", "if changed:", "if False:"),),
        ),
        Break(
            here + "test_a_fault_of_the_code_is_answered_and_the_torque_goes_on",
            "services let exceptions pass",
            (UNEXPECTED,),
        ),
        Break(
            here + "test_a_fault_of_the_code_in_the_loop_ends_the_process_at_zero",
            "the process ends as it is",
            (
                (
                    "run_undisturbed",
                    "            node.end()\n            node.steady.end()",
                    "            node.steady.end()",
                ),
            ),
        ),
        Break(
            here + "test_a_fault_of_the_code_in_the_loop_ends_the_process_at_zero",
            "the same fault ends its end",
            (("CompensationLoop.end", "except Exception:", "except KeyError:"),),
        ),
        Break(
            node + "test_after_a_failed_configuration_enable_repeats_the_reason",
            "the reason is not kept",
            (
                (
                    "GravityCompensation.on_configure",
                    '            self._refusal = f"{self._phase}: {unexpected}{error}"',
                    "            pass",
                ),
            ),
        ),
        Break(
            "test_set_clock.py::test_the_compensation_fades",
            "the thread that watches does not keep its pace",
            (
                (
                    "GravityCompensation.__init__",
                    "SteadyThread(self, self._watch, WATCH_PERIOD_S)",
                    "SteadyThread(self, self._watch, 1e5)",
                ),
            ),
        ),
        Break(
            node + "test_deactivation_ends_at_zero_and_allows_another_life",
            "deactivation ends as it is",
            (
                (
                    "CompensationLoop.end",
                    "        while not self.compensator.at_rest:",
                    "        while False:",
                ),
            ),
        ),
        Break(
            node + "test_a_signal_brings_the_output_to_zero_before_the_process_ends",
            "signals kill",
            (("run_undisturbed", "signal.signal(number, interrupted)", "signal.signal(number, signal.SIG_DFL)"),),
        ),
        Break(
            here + "test_a_process_that_is_halted_or_killed",
            "the fault ramp counts the time before it",
            (("TorqueRamp.fade", "self._time = time  # the ramp begins now", "pass  # the ramp begins now"),),
        ),
        Break(
            here + "test_a_process_that_is_halted_or_killed",
            "the first torque is not zero",
            (("TorqueRamp.__init__", "self.torque = [0.0] * joints", "self.torque = [10.0] * joints"),),
        ),
        Break(
            here + "test_a_storm_of_bad_joint_states",
            "the rate is not limited",
            (
                (
                    "TorqueRamp.step",
                    "self._unbraked[i] = min(max(wanted, last - step), last + step)",
                    "self._unbraked[i] = wanted",
                ),
            ),
        ),
        Break(
            "test_controller_query.py::test_a_controller_that_does_not_fit_is_refused",
            "joints that the model does not know are taken",
            (("_checked_joints", "    if unknown:", "    if False:"),),
        ),
        Break(
            "test_controller_query.py::test_joints_in_another_order_get_their_torques_and_the_arm_is_held",
            "the order stays",
            (
                (
                    "CompensationLoop.follow_controller",
                    "            self.commands.use_order(joints)",
                    "            pass",
                ),
            ),
        ),
        Break(
            "test_controller_query.py::test_a_controller_that_comes_back_with_other_joints_is_a_fault",
            "what the controller says later is not looked at",
            (
                (
                    "GravityCompensation._on_controller",
                    "self._loop.follow_controller(other_controller, self._controller.commanded_joints)",
                    "pass",
                ),
            ),
        ),
        Break(
            "compensation/test_inputs.py::test_a_set_point_that_cannot_be_meant_is_refused",
            "joints of another robot are passed over",
            (("CompensationSetpoint._target", "        if unknown or not names:", "        if False:"),),
        ),
        Break(
            "compensation/test_inputs.py::test_damping_without_velocities_is_a_fault",
            "velocities that are missing count as zero",
            (
                (
                    "CompensationLoop._act_on_one",
                    'velocity = order.pick(message, "velocity") if needed else None',
                    "velocity = [0.0] * len(position) if needed else None",
                ),
            ),
        ),
    ]


def _controllers() -> list[Break]:
    activity, query = "test_controller_activity.py::", "test_controller_query.py::"
    return [
        Break(
            query + "test_a_controller_that_is_not_there_fails_the_transition_at_once",
            "a controller that does not answer is taken",
            (
                (
                    "CompensationController.answer",
                    "if self._settings.unchecked_controller and self._problem:",
                    "if self._problem:",
                ),
            ),
        ),
        Break(
            query + "test_of_an_answering_controller_the_joints_win_and_others_are_refused",
            "joints that are given are not compared",
            (
                (
                    "_checked_joints",
                    "if expected and expected != list(controller.joints):",
                    "if False:",
                ),
            ),
        ),
        Break(
            query + "test_a_controller_that_answers_late_with_other_joints_is_a_fault",
            "an unchecked controller is never looked at",
            (
                (
                    "CompensationController.other_controller",
                    "if latest is None or not self._order:",
                    "if latest is None or self._used is None:",
                ),
            ),
        ),
        Break(
            activity + "test_deactivated_while_enabled_is_a_fault",
            "transitions change nothing",
            (("CompensationController._on_event", "if event == DEACTIVATED or", "if False or"),),
        ),
        Break(
            activity + "test_an_inactive_controller_may_be_enabled_for_and_is_told_of",
            "inactive ones are not told of",
            (
                (
                    "CompensationStatus._warning",
                    "if inactive := loop.controller.inactive:",
                    "if inactive := '':",
                ),
            ),
        ),
        Break(
            activity + "test_a_controller_that_drops_the_effort_is_a_fault_and_then_there_is_silence",
            "a ramp is commanded all the same",
            (
                (
                    "CompensationLoop.watch",
                    "self.compensator.drop(now, problem)",
                    "self.compensator.interrupt(now, problem)",
                ),
            ),
        ),
        Break(
            activity + "test_after_an_action_goal_enable_is_refused_until_the_controller_is_configured_anew",
            "goals are not looked for",
            (("CompensationController.check", "self.watch is not None and self.watch.had_goal:", "False:"),),
        ),
        Break(
            activity + "test_a_goal_while_enabled_is_a_fault",
            "goals are looked for at first alone",
            (("CompensationController._on_event", "(event == GOAL and self.follows_trajectories)", "False"),),
        ),
        Break(
            activity + "test_the_ramp_begins_at_the_torque_that_was_left",
            "each ramp begins at zero",
            (
                (
                    "CompensationLoop._begin",
                    "compensator.enable(now, start, first_pose,",
                    "compensator.enable(now, None, first_pose,",
                ),
            ),
        ),
        Break(
            activity + "test_offsets_of_the_sensors_are_never_commanded",
            "measured efforts are commanded",
            (("ActingTorque.start", "return [scale * value for value in gravity], f", "return list(held.effort), f"),),
        ),
        Break(
            activity + "test_a_torque_that_is_no_part_of_gravity_is_refused",
            "efforts and gravity are not compared",
            (("acting_scale", "if abs(measured - scale * torque) > limit:", "if False:"),),
        ),
        Break(
            activity + "test_a_ramp_that_would_let_the_arm_sink_is_refused",
            "the scale is not looked at",
            (("CompensationLoop._check_support", "if scale > gain + MAX_SINK_FRACTION and", "if False and"),),
        ),
        Break(
            activity + "test_an_active_controller_of_unknown_torque_is_refused",
            "what is not known is zero",
            (("ActingTorque.start", "raise ControlError(self._refusal())", 'return None, ""'),),
        ),
        Break(
            activity + "test_an_effort_that_is_no_number_is_no_start",
            "what is not measured is zero",
            (
                (
                    "ActingTorque.start",
                    "        except DynidError as error:\n",
                    "        except DynidError:\n            return None, ''\n        except KeyError as error:\n",
                ),
            ),
        ),
        Break(
            activity + "test_an_arm_that_sags_does_not_sink_from_one_enable_to_the_next",
            "the measured pose is held",
            (
                (
                    "CompensationLoop._begin",
                    "compensator.enable(now, start, first_pose,",
                    "compensator.enable(now, start, None,",
                ),
            ),
        ),
        Break(
            activity + "test_a_position_controller_that_would_snap_back_is_named",
            "it is not asked",
            (("CompensationController.warning", "if answer and answer.restores_last_command else", "if False else"),),
        ),
        Break(
            activity + "test_a_torque_that_acts_although_disabled_is_told_of",
            "it is not looked at",
            (("CompensationStatus._acting", "if abs(effort) > MIN_REPORTED_FRACTION * limit:", "if False:"),),
        ),
        Break(
            activity + "test_silence_alone_may_hold_the_torque_for_a_while",
            "nothing is held",
            (
                (
                    "GravityCompensator.watch",
                    "self._ramp.hold(time + self._timing.hold_on_silence)",
                    "self._ramp.hold()",
                ),
            ),
        ),
    ]


def _excitation() -> list[Break]:
    here, asked = "test_promises_excitation.py::", "test_watch.py::"
    pieces = "test_motion_pieces.py::"
    rests = here + "test_a_fault_brings_the_arm_to_rest_and_is_named"
    same = here + "test_what_is_no_fault_goes_on"
    node, waiting = "test_excitation_node.py::", "test_robot_description.py::"
    return [
        Break(
            f"{rests}[driver stops]",
            "no state is ever too old",
            (("Arm._watch_motion", "elif age > self._stale_after:", "elif False:"),),
        ),
        Break(f"{rests}[nan]", "positions are not looked at", (NOT_FINITE,)),
        Break(f"{rests}[joint missing]", "missing joints are not looked for", (NOT_MISSING,)),
        Break(f"{rests}[joint twice]", "joints that come twice are not looked for", (NOT_TWICE,)),
        Break(f"{rests}[two drivers]", "distances from the motion are not looked at", (FOLLOWED,)),
        Break(f"{rests}[controller refuses]", "distances from the motion are not looked at", (FOLLOWED,)),
        Break(
            f"{rests}[effort too large]",
            "efforts are not looked at",
            (("EffortWatch.check", "if late.any():", "if False:"),),
        ),
        Break(
            f"{rests}[controller gone]",
            "listeners are not looked at",
            (("Arm._watch_motion", "elif not self._has_controller():", "elif False:"),),
        ),
        Break(
            asked + "test_no_motion_is_sent_to_a_controller_that_begins_each_at_the_measured_pose",
            "its parameters decide nothing",
            (("MotionController.refusal", "if self.jerks and not self._accept_jerk:", "if False:"),),
        ),
        Break(
            asked + "test_accepted_its_stop_begins_where_the_arm_was_to_be",
            "a stop always begins where the controller does",
            (("Arm._slow_down", "0.0 if self._controller.jerks else", "0.0 if False else"),),
        ),
        Break(
            asked + "test_an_inactive_controller_is_refused",
            "its state is not looked at",
            (("MotionController._is_inactive", "self._watch.state == INACTIVE", "False"),),
        ),
        Break(
            asked + "test_deactivated_under_way_it_is_told_and_the_motion_is_stopped",
            "its transitions are not heard",
            (("MotionController._on_event", "if event == DEACTIVATED:", "if False:"),),
        ),
        Break(
            here + "test_after_a_fault_start_works_again",
            "it is not kept why states are of no use",
            (("Arm._look_at", 'self._unusable = f": {error}"', 'self._unusable = ""'),),
        ),
        Break(f"{same}[reorder]", "the first order of the names holds", (OLD_ORDER,)),
        Break(
            f"{same}[later]",
            "states are as old as their stamps say",
            (
                (
                    "Arm._look_at",
                    'position, time.monotonic(), ""',
                    'position, time.monotonic() - 9.0 * (message.header.stamp.sec > time.time() + 9.0), ""',
                ),
            ),
        ),
        Break(f"{same}[sparse]", "states are old after 50 ms", (SOON_STALE,)),
        Break(here + "test_a_short_silence_is_nothing", "states are old after 50 ms", (SOON_STALE,)),
        Break(
            "test_motion_time.py::test_the_computers_clock_may_be_set",
            "motions are timed by the node's clock",
            (("MotionTime._read", "* 1e-9 if simulated else time.monotonic()", "* 1e-9"),),
        ),
        Break(
            "test_set_clock.py::test_the_excitation_brings_the_arm_to_rest",
            "the thread that watches does not keep its pace",
            (
                (
                    "ExcitationNode.__init__",
                    "SteadyThread(self, self._watch, 1.0 / WATCH_RATE)",
                    "SteadyThread(self, self._watch, 1e5)",
                ),
            ),
        ),
        Break(
            here + "test_a_jump_of_the_clock_brings_the_arm_to_rest_from_where_it_is",
            "jumps of the clock count as time",
            (("MotionTime.now", "(not self._simulated or 0.0 <= step <= LONGEST_STEP)", "True"),),
        ),
        Break(
            here + "test_while_the_clock_stands_still_nothing_starts",
            "a clock that stands still is not looked for",
            (
                (
                    "Arm.require_controller",
                    "            if self._time.stalled > self._stale_after:",
                    "            if False:",
                ),
            ),
        ),
        Break(
            node + "test_start_is_refused_without_a_controller",
            "listeners are not looked at",
            (
                (
                    "Arm._hindrance",
                    "        if not self._has_controller():",
                    "        if False:",
                ),
            ),
        ),
        Break(
            node + "test_start_is_refused_without_good_joint_states",
            "any state is good enough for a start",
            (("Arm._state_after", "while self._received <= moment:", "while False:"),),
        ),
        *_by_action(),
        Break(here + "test_parameters_and_urdf_that_change_under_way_change_nothing", "limits may be set", (WRITABLE,)),
        Break(
            here + "test_what_stops_a_motion_may_be_set_under_way",
            "the limits of the start stay",
            (("Arm.adjust", "self._efforts.adjust(settings.effort_limit, settings.effort_grace)", "pass"),),
        ),
        Break(
            here + "test_services_in_parallel_start_one_motion",
            "two things may be done at once",
            (
                (
                    "ExcitationNode._exclusively",
                    "if self._doing:\n                raise",
                    "if False:\n                raise",
                ),
            ),
        ),
        Break(
            here + "test_a_recording_that_cannot_be_read_is_named",
            "recordings are not read",
            (("Design.plan", "            if paths:", "            if False:"),),
        ),
        Break(here + "test_a_fault_of_the_code_is_answered", "services let exceptions pass", (UNEXPECTED,)),
        Break(
            here + "test_a_malformed_urdf_ends_the_node_with_one_message",
            "errors of the XML parser pass",
            (NO_XML_ERROR,),
        ),
        Break(
            waiting + "test_a_node_waits_for_the_urdf_and_says_so",
            "it ends after 10 s",
            (("robot_description", "        if waited > timeout:", "        if waited > 10.0:"),),
        ),
        Break(
            waiting + "test_a_node_that_waits_for_the_urdf_ends_when_it_is_told_to",
            "nobody looks whether it is to end",
            (("robot_description", "        rclpy.spin_once(node, timeout_sec=0.0)\n", ""),),
        ),
        Break(
            node + "test_interrupt_stops_the_arm_before_the_process_ends",
            "signals kill",
            (("run_undisturbed", "signal.signal(number, interrupted)", "signal.signal(number, signal.SIG_DFL)"),),
        ),
        Break(
            here + "test_killed_the_controller_ends_the_motion_at_rest_and_a_new_node_waits_for_it",
            "others are not looked for",
            (ALONE,),
        ),
        Break(
            here + "test_killed_while_it_sends_pieces_the_arm_rests_within_two_seconds",
            "the motion is always sent whole",
            (("MotionController.handover", "        if answer is None or", "        if True or"),),
        ),
        Break(
            pieces + "test_where_no_more_pieces_come_the_arm_rests_within_the_limits",
            "a piece has no stop",
            (("piece", "    ending = end + SHORTEST_REMAINDER >= motion.duration", "    ending = True"),),
        ),
        Break(
            pieces + "test_the_reference_is_the_plan_when_a_piece_is_late",
            "a piece begins when it comes",
            (("MotionPieces.next_piece", "if self._handover.is_stamped:", "if False:"),),
        ),
        Break(
            asked + "test_a_node_that_is_halted_leaves_the_arm_at_rest_and_sends_no_more",
            "no piece is ever too late",
            (("MotionPieces.lateness", "elapsed > self._stop_time - LATEST_PIECE else", "False else"),),
        ),
        Break(
            asked + "test_where_the_clock_of_the_controller_is_another_the_motion_is_sent_whole",
            "clocks are not compared",
            (("Arm.load", "if self._clock_difference <= SAME_CLOCK else None", "if True else None"),),
        ),
        Break(
            here + "test_a_stop_brings_an_arm_to_rest_that_another_moves",
            "the arm is not looked at",
            (("Arm.brake", "        if not speeds:", "        if True:"),),
        ),
        Break(
            here + "test_a_stop_of_an_arm_at_rest_replaces_what_the_controller_has",
            "nothing is held",
            (("Arm._hold_at_rest", "        self._commands.publish(", "        str("),),
        ),
        Break(
            here + "test_an_arm_at_rest_is_left_to_another_node_that_commands_it",
            "others are not looked for",
            (("Arm._hold_at_rest", "if others := self._other_publishers():", "if others := []:"),),
        ),
        Break(
            here + "test_an_old_motion_that_dwells_in_the_controller_is_replaced_by_a_hold_first",
            "nothing is held",
            (
                (
                    "ExcitationNode.start",
                    "            await self._hold()  #",
                    "            await self.arm.take_command()  #",
                ),
            ),
        ),
        Break(
            here + "test_an_arm_that_moves_although_it_is_held_is_not_started",
            "a held arm is not looked at",
            (
                (
                    "Arm.hold",
                    "            await self.resting_position()\n        except",
                    "            pass\n        except",
                ),
            ),
        ),
    ]


def _identification() -> list[Break]:
    here, few = "test_promises_identification.py::", "test_cli_not_enough.py::"
    node = "test_load_identification_node.py::"
    return [
        Break(
            here + "test_a_bad_recording_is_answered_and_the_next_is_fitted",
            "errors of archives pass",
            (
                (
                    "read_npz",
                    "except Exception as error:  # a dozen",
                    "except KeyError as error:  # a dozen",
                ),
            ),
        ),
        Break(
            here + "test_of_a_truncated_bag_the_whole_part_is_fitted",
            "nobody says that it was cut off",
            (("read_bag", '"truncated": bag.truncated', '"truncated": False'),),
        ),
        Break(
            here + "test_one_that_takes_long_says_how_far_it_is_and_can_be_cancelled",
            "what is cancelled goes on",
            (("Watch._check", "if self._cancelled.is_set():", "if False:"),),
        ),
        Break(
            here + "test_a_bag_that_is_gone_is_named",
            "the recorder's bag is not looked for",
            (
                (
                    "IdentificationNode._run",
                    "path = self.chosen().recording or self.bag",
                    "path = self.chosen().recording",
                ),
            ),
        ),
        Break(
            here + "test_of_calls_in_parallel_one_is_served",
            "fits may run side by side",
            (
                (
                    "IdentificationNode.identify",
                    "if self._since is not None:\n            raise",
                    "if False:\n            raise",
                ),
            ),
        ),
        Break(
            here + "test_parameters_and_urdf_that_change_are_for_the_next_call",
            "parameters are read late",
            (
                (
                    "IdentificationNode._run",
                    "        path = self.chosen().recording or self.bag",
                    "        time.sleep(1.0)\n        path = self.chosen().recording or self.bag",
                ),
            ),
        ),
        Break(
            "test_gravity_identification_node.py::test_joints_that_never_turned_are_no_success",
            "what is known is enough",
            (
                (
                    "IdentificationNode.identify",
                    "        if missing:\n            words",
                    "        if False:\n            words",
                ),
            ),
        ),
        Break(
            few + "test_links_of_a_short_recording",
            "links are written all the same",
            (
                (
                    "LinkResult.document",
                    '        if not self.missing:\n            document["links"]',
                    '        if True:\n            document["links"]',
                ),
            ),
        ),
        Break(
            few + "test_links_of_a_short_recording",
            "the URDF of an earlier run stays",
            (("identification:identify", '                remove(output / "identified.urdf")\n', ""),),
        ),
        Break(
            few + "test_gravity_where_some_joints_never_turned",
            "what is known is enough",
            (("Answer.of", "int(bool(missing))", "0"),),
        ),
        Break(
            few + "test_a_load_that_hardly_turned",
            "what is not known is not told",
            (
                (
                    "LoadResult.missing",
                    "if not unknown or not (self.is_loaded",
                    "if True or not (self.is_loaded",
                ),
            ),
        ),
        Break(
            here + "test_a_folder_that_cannot_be_written_is_named",
            "errors of the file system pass",
            (("atomic:_named_errors", "except OSError as error:", "except KeyError as error:"),),
        ),
        Break(
            here + "test_a_fault_of_the_code_is_answered",
            "services let exceptions pass",
            (UNEXPECTED,),
        ),
        Break(
            here + "test_a_malformed_urdf_ends_the_node_with_one_message",
            "errors of the XML parser pass",
            (NO_XML_ERROR,),
        ),
        Break(
            here + "test_killed_at_any_step_of_writing_a_file_is_old_or_new",
            "files are written in place",
            (
                (
                    "write_atomically",
                    "    with atomic_file(path) as file:\n        file.write(",
                    "    with Path(path).open('wb') as file:\n        file.write(",
                ),
            ),
        ),
        Break(
            here + "test_killed_at_any_moment_files_are_whole_or_absent",
            "reports lack their end",
            (("Page.write", "sections=shown).lstrip())", "sections=shown).lstrip()[:-100])"),),
        ),
        Break(
            here + "test_a_process_that_is_killed_or_told_to_end_while_it_fits",
            "a shutdown is a fault",
            (("ros_process", "except (KeyboardInterrupt, ExternalShutdownException):", "except KeyboardInterrupt:"),),
        ),
        Break(
            "test_load_identification_node.py::test_live_a_bag_is_played_with_its_clock",
            "nobody looks for a clock",
            (("Diagnostics._lacks_clock", "return waits and", "return False and"),),
        ),
        Break(
            node + "test_live_gaps_are_counted_and_faults_named",
            "gaps are not counted",
            (
                (
                    "SteadySamples._place",
                    "self.missing += steps - 1",
                    "self.missing += 0",
                ),
            ),
        ),
        Break(
            node + "test_live_a_clock_that_is_set_back",
            "a clock that is set back is not looked for",
            (("TorqueSamples.of", "self.was_set_back = back > SET_BACK", "self.was_set_back = False"),),
        ),
        Break(
            here + "test_the_watch_on_torque_sensors_names_what_is_wrong",
            "a clock that is set back is not looked for",
            (("TorqueSamples.of", "self.was_set_back = back > SET_BACK", "self.was_set_back = False"),),
        ),
        Break(
            "test_torque_sensor_calibration_node.py::test_without_samples_accept_is_refused",
            "whether anything is known is not looked at",
            (
                (
                    "TorqueSensorObserver.accept",
                    "        if not known.any():",
                    "        if False:",
                ),
            ),
        ),
    ]


def _simulator() -> list[Break]:
    here, node = "test_promises_simulator.py::", "test_simulator_node.py::"
    return [
        Break(
            node + "test_refuses_bad_trajectories_and_stays",
            "sizes of points are not compared",
            (("trajectory_points", "            if len(row) != n:", "            if False:"),),
        ),
        Break(
            node + "test_refuses_an_effort_that_is_not_finite_and_a_wrong_size_ends_the_controller",
            "efforts need not be finite",
            (("ForwardController.command", "            if not np.isfinite(value):", "            if False:"),),
        ),
        Break(
            node + "test_refuses_an_effort_that_is_not_finite_and_a_wrong_size_ends_the_controller",
            "a command of another size is nothing",
            (("ForwardController.update", "or not command.size:", "or command.size != len(self._joints):"),),
        ),
        Break(
            node + "test_without_torque_the_arm_falls_and_the_switch_back_snaps_it_to_the_pose_of_before",
            "an activation begins at the measured pose",
            (("TrajectoryController.activate", "= commanded if last else position", "= position"),),
        ),
        Break(
            "test_simulated_controllers.py::test_a_goal_is_told_and_leaves_its_effort_and_its_tolerances",
            "a goal leaves no effort",
            (("TrajectoryController.update", "self._hold_effort = course.last_effort", "pass"),),
        ),
        Break(
            "test_hardware.py::test_before_any_command_and_with_nan_the_arm_is_held",
            "NaN is an effort",
            (("ArmHardware.write", "effort = np.nan_to_num(commands.effort)", "effort = commands.effort"),),
        ),
        Break(
            "test_controlled_arm.py::test_beside_a_position_controller_the_torque_outlives_its_controller",
            "a deactivation takes the torque away",
            (
                (
                    "ForwardController.deactivate",
                    '"""The same."""\n',
                    '"""The same."""\n        self._interfaces.effort = np.zeros(len(self._joints))\n',
                ),
            ),
        ),
        Break(
            node + "test_an_impossible_load_is_not_picked_up",
            "sizes of a load's numbers are not compared",
            (("load_of", "if len(getattr(settings, name)) != length:", "if False:"),),
        ),
        Break(
            here + "test_a_publisher_that_is_gone_leaves_its_last_command",
            "torques are not carried out",
            (("ForwardController.update", "self._interfaces.effort = command[self._order]", "pass"),),
        ),
        Break(
            here + "test_a_clock_that_jumps_and_stands_still",
            "a clock that is set back is not looked for",
            (("SimulatorNode._catch_up", "if not 0 <= backlog <", "if not backlog <"),),
        ),
        Break(
            node + "test_a_stopped_process_reports_the_time_it_lost",
            "lost time is not counted",
            (("SimulatorNode._catch_up", "self._lost += abs(backlog) / 1e9", "self._lost += 0.0"),),
        ),
        Break(
            here + "test_a_motion_that_cannot_be_computed_begins_anew",
            "errors of the simulation pass",
            (
                (
                    "SimulatorNode._catch_up",
                    'except DynidError as error:\n                self._refuse(f"{error}; {self.reset()}")',
                    'except KeyError as error:\n                self._refuse(f"{error}; {self.reset()}")',
                ),
            ),
        ),
        Break(
            here + "test_services_in_parallel_are_all_answered",
            "a mode that is there already is refused",
            (("Controllers._exchange", 'return f"in {self.mode} already"', 'raise DynidError("already")'),),
        ),
        Break(
            node + "test_bad_parameters_end_the_process_with_one_line",
            "the exit code is another",
            (
                (
                    "ros_process",
                    '{error}", file=sys.stderr)\n        sys.exit(2)',
                    '{error}", file=sys.stderr)\n        sys.exit(3)',
                ),
            ),
        ),
        Break(
            here + "test_killed_and_started_again",
            "joint states are on another topic",
            (("SimulatorNode.__init__", '== "ros2_control" else "joint_states"', '== "ros2_control" else "j"'),),
        ),
    ]


def _recorder() -> list[Break]:
    here, node, bag = "test_promises_recorder.py::", "test_recorder_node.py::", "test_bag_writer.py::"
    seldom = ("FLUSH_PERIOD", "FLUSH_PERIOD = 0.4", "FLUSH_PERIOD = 5.0")
    no_end = ("BagWriter._complete", "            self._writer.close()\n", "")
    no_restoration = ("BagWriter._failure", "            self._file.restore()", "            pass")
    unexpected = ("BagWriter.__init__", "except (OSError, WriterError) as error:", "except KeyError as error:")
    written = "            self._bag.write(topic.topic,"
    return [
        Break(
            node + "test_nothing_is_lost_at_1_khz_beside_a_busy_core",
            "the queue holds five messages",
            (("DEPTH", "DEPTH = 10_000", "DEPTH = 5"),),
        ),
        Break(
            here + "test_messages_that_a_full_queue_pushes_out_are_counted",
            "they are not counted",
            (("RawSubscription._count_missing", "self.lost += number - before - 1", "self.lost += 0"),),
        ),
        Break(
            here + "test_messages_that_the_middleware_loses_are_counted",
            "they are counted where the queue was full alone",
            (("RawSubscription.drain", "                self._count_missing(number)", "                pass"),),
        ),
        Break(
            here + "test_what_is_missing_is_counted_for_each_publisher",
            "there is one publisher",
            (("RawSubscription._count_missing", "max(len(self.offered), 1)", "1"),),
        ),
        Break(
            here + "test_a_topic_of_unknown_type_is_a_problem_of_that_topic",
            "it ends the recording",
            (("Recorder._add_topic", "            if bag.is_broken:", "            if True:"),),
        ),
        Break(here + "test_what_came_is_in_the_file_within_half_a_second", "written every 5 s", (seldom,)),
        Break(bag + "test_bag_is_complete_after_each_flush", "no end is written", (no_end,)),
        Break(
            bag + "test_a_long_recording_goes_on_in_further_files",
            "it goes on in the first",
            (("BagWriter.flush", "if len(self._storage.chunks) >= CHUNKS_PER_FILE:", "if False:"),),
        ),
        Break(
            bag + "test_what_is_kept_and_written_anew_does_not_grow_with_the_recording",
            "indices of files before are kept",
            (("BagWriter._begin_file", "storage.path, storage.chunks = path, []", "storage.path = path"),),
        ),
        Break(
            bag + "test_full_disk_in_a_further_file",
            "a file that is not listed stays",
            (("BagWriter._failure", "remains if self._is_listed else [*remains, self._storage.path]", "remains"),),
        ),
        Break(here + "test_killed_at_any_moment_it_loses_no_more_than_half_a_second", "written every 5 s", (seldom,)),
        Break(bag + "test_killed_at_any_write_it_leaves_all_up_to_the_last_flush", "no end is written", (no_end,)),
        Break(
            here + "test_impatient_signals_close_the_bag_all_the_same",
            "signals disturb",
            (
                (
                    "recorder:main",
                    "    run_undisturbed(Recorder)",
                    '    __import__("dynid_ros.nodes.shared.process", fromlist=["run"]).run(Recorder)',
                ),
            ),
        ),
        Break(
            here + "test_the_end_of_the_node_takes_along_what_has_come",
            "what waits is not taken along",
            (
                (
                    "Recorder.end",
                    "            if self._bag is not None:\n                self._drain()",
                    "            if False:\n                pass",
                ),
            ),
        ),
        Break(
            node + "test_signal_closes_the_bag",
            "the end does not close the bag",
            (
                (
                    "Recorder.end",
                    "            if bag is not None:\n                bag.close()",
                    "            if False:\n                pass",
                ),
            ),
        ),
        Break(
            here + "test_a_full_disk_ends_the_recording_and_what_was_there_stays",
            "what was half written stays",
            (no_restoration,),
        ),
        Break(bag + "test_full_disk_leaves_a_complete_bag", "what was half written stays", (no_restoration,)),
        Break(
            node + "test_disk_that_goes_away",
            "the failure is not kept",
            (("Recorder._fail", "self._failure = str(error)", 'self._failure = ""'),),
        ),
        Break(
            here + "test_a_folder_that_cannot_be_written_is_refused_at_the_start",
            "errors of the file system pass",
            (unexpected,),
        ),
        Break(
            node + "test_autostart_into_a_folder_that_cannot_be_written",
            "errors of the file system pass",
            (unexpected,),
        ),
        Break(
            here + "test_two_recorders_in_one_folder_in_one_second",
            "there is one name in a second",
            (("_open_writer", "for candidate in chain([path], numbered):", "for candidate in (path, path):"),),
        ),
        Break(
            bag + "test_a_folder_that_another_process_makes_meanwhile_is_left_alone",
            "that is an error",
            (("_open_writer", "if not candidate.exists():  # else", "if True:  # else"),),
        ),
        Break(
            here + "test_a_namesake_is_told_of",
            "namesakes are not looked for",
            (("Recorder._find_namesakes", "if count < 2:", "if True:"),),
        ),
        Break(
            here + "test_of_starts_at_once_one_begins_and_of_stops_one_ends",
            "a recording may begin in another",
            (
                (
                    "Recorder._start",
                    "        if self._bag is not None:\n            raise",
                    "        if False:\n            raise",
                ),
            ),
        ),
        Break(
            node + "test_publisher_that_comes_late_or_again_with_other_qos",
            "the first QoS holds",
            (
                (
                    "RawSubscription.update",
                    "if self._subscription is None or self._subscription.qos_profile != qos:",
                    "if self._subscription is None:",
                ),
            ),
        ),
        Break(
            here + "test_two_publishers_of_a_topic_and_one_that_goes_are_recorded",
            "two publishers are a problem",
            (("RawSubscription._find_problem", "        if len(types) > 1:", "        if len(publishers) > 1:"),),
        ),
        Break(
            node + "test_topic_of_a_wrong_type",
            "types are not compared",
            (("RawSubscription._find_problem", "if allowed and types[0] not in allowed:", "if False:"),),
        ),
        Break(
            node + "test_recording_without_joint_states_says_so",
            "silence is not told of",
            (("Recorder._present", "if warning := silence(", "if warning := '' and silence("),),
        ),
        Break(
            here + "test_what_is_no_sensible_state_is_recorded_as_it_came",
            "short messages are left out",
            (("Recorder._write", written, written.replace("self._bag", "len(data) < 60 or self._bag")),),
        ),
        Break(
            here + "test_large_messages_do_not_push_out_others",
            "large messages are left out",
            (("Recorder._write", written, written.replace("self._bag", "len(data) > 10**6 or self._bag")),),
        ),
        Break(
            here + "test_a_clock_that_is_set_back_changes_no_order",
            "times are those of the clock",
            (("ReceptionTime.of", "        return found", "        return received"),),
        ),
        Break(
            here + "test_simulated_time_that_stands_still_does_not_stop_it",
            "timers are by the node's clock",
            (("Recorder.__init__", "steady_timer(self, DISCOVERY_PERIOD,", "self.create_timer(DISCOVERY_PERIOD,"),),
        ),
        Break(
            "test_set_clock.py::test_the_recorder_writes_on_and_ends_when_it_is_told_to",
            "the thread does not keep its pace",
            (
                (
                    "Recorder.__init__",
                    "SteadyThread(self, self._take, POLL_PERIOD)",
                    "SteadyThread(self, self._take, 1e5)",
                ),
            ),
        ),
    ]


def _imu() -> list[Break]:
    fails = "test_base_imu.py::test_an_imu_that_fails_fades_the_torque"
    refused = "test_base_imu.py::test_enable_is_refused_by_an_imu_that_cannot_be_believed"
    unheeded = (("CompensationLoop.watch", "elif problem := self.imu.doubt(now):", "elif problem := '':"),)
    unchecked = (("CompensationImu.check", "if problem := self.doubt(now := time.monotonic()):", "if now := 0.0:"),)
    return [
        Break(
            "test_base_imu.py::test_torque_follows_a_base_that_tilts",
            "gravity turns at once",
            (("BaseGravity.follow", "share = 1.0 if free or angle == 0.0", "share = 1.0 if True"),),
        ),
        Break(
            "test_base_imu.py::test_torque_follows_an_imu_that_is_mounted_askew",
            "its axes are taken for the base's",
            (("CompensationImu._mount", 'mount_rotation(self._robot, frame, "it cannot be used")', "np.eye(3)"),),
        ),
        Break(f"{fails}[silent]", "its silence is not heard", (("BaseGravity.problem", "if age >", "if 0.0 * age >"),)),
        Break(
            "test_base_imu.py::test_an_imu_that_fails_holds_the_arm_first",
            "the arm falls",
            (
                (
                    "CompensationLoop.watch",
                    "doubt(now):\n                self.compensator.interrupt(now, problem)",
                    "doubt(now):\n                self.compensator.interrupt(now, problem, fade=True)",
                ),
            ),
        ),
        Break(f"{fails}[nan]", "its problems are not heeded", unheeded),
        Break(
            f"{fails}[units]", "its norm is not looked at", (("BaseGravity.problem", "> MAX_NORM_ERROR:", "> 1e9:"),)
        ),
        Break(
            f"{fails}[fallen]",
            "any tilt is believed",
            (("BaseGravity.problem", "if tilt > self._rules.largest_tilt:", "if tilt > 4.0:"),),
        ),
        *(Break(f"{refused}[{case}]", "it is not asked", unchecked) for case in ("silent", "upside down", "frame")),
    ]


def _external_torque() -> list[Break]:
    here = "test_external_torque_node.py::test_"
    return [
        Break(
            here + "a_push_is_contact_and_named",
            "no residual is above its threshold",
            (("ContactMonitor.update", "if abs(value) > bound:", "if False:"),),
        ),
        Break(here + "what_is_not_known_is_not_said", "numbers that are none are believed", (NOT_FINITE,)),
        Break(
            here + "after_a_gap_and_a_clock_set_back_it_settles_anew",
            "what was before a gap counts",
            (("MomentumObserver.update", "time - before[0] > MAX_GAP_S", "False"),),
        ),
        Break(
            here + "velocities_that_no_driver_fills_are_differentiated",
            "they are taken for zero",
            (("external_torque_of", "velocity = None  # differentiated", "velocity = [0.0] * 3"),),
        ),
        Break(
            here + "a_load_counts_and_one_that_cannot_be_meant_is_refused",
            "loads are not counted with",
            (("LoadInput._on_message", "            self._monitor.carry(load)\n", "            pass\n"),),
        ),
        Break(
            here + "what_makes_no_sense_is_refused",
            "a model is not asked for",
            (("ExternalTorqueNode.__init__", "if not settings.model_file:", "if False:"),),
        ),
    ]


BREAKS = (
    *_external_torque(),
    *_writers(),
    *_models(),
    *_motion(),
    *_compensation(),
    *_imu(),
    *_controllers(),
    *_excitation(),
    *_recorder(),
    *_identification(),
    *_simulator(),
)
