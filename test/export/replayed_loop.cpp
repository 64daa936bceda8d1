// Replays a script of events from the standard input, and prints state, whether it commands, and torques.
#include "arm.h"
#include "gravity_loop.hpp"

#include <iostream>
#include <limits>
#include <string>

constexpr std::size_t N = ARM_JOINTS;

template <class Array>
void read(Array & values)
{
  std::string word;
  for (auto & value : values) {
    std::cin >> word;
    value = std::stod(word);
  }
}

int main()
{
  dynid::Settings<N> settings;
  std::array<double, 4> times{};
  for (auto * values : {&settings.gain, &settings.torque, &settings.rate, &settings.lower, &settings.upper,
         &settings.velocity}) {
    read(*values);
  }
  read(times);
  settings.ramp_time = times[0];
  settings.fault_ramp_time = times[1];
  settings.timeout = times[2];
  settings.hold_on_silence = times[3];
  dynid::GravityLoop<N, arm_load> loop(arm_gravity_torque, settings);
  std::cout.precision(17);
  std::string event;
  while (std::cin >> event) {
    std::array<double, 2> time{};
    std::array<double, N> joints{};
    read(time);
    bool commands = false;
    int refusal = 0;
    if (event == "state") {
      read(joints);
      commands = loop.update(time[0], joints, time[1]);
    } else if (event == "watch") {
      commands = loop.watch(time[0]);
    } else if (event == "enable") {
      read(joints);
      refusal = static_cast<int>(loop.enable(time[0], joints) != dynid::Reason::none);
    } else if (event == "disable") {
      loop.disable();
    } else if (event == "stop") {
      loop.stop(time[0]);
    } else if (event == "interrupt") {
      loop.interrupt(time[0]);
    } else if (event == "restart") {
      loop.restart();
    } else if (event == "load") {
      std::array<double, 4> body{};
      read(body);
      const arm_load load{body[0], {body[1], body[2], body[3]}, {0.0, 0.0, 0.0, 0.0, 0.0, 0.0}};
      loop.set_load(body[0] == 0.0 ? nullptr : &load);
    } else if (event == "scale") {
      settings = loop.settings();
      read(settings.gain);
      refusal = static_cast<int>(loop.adjust(settings) != dynid::Reason::none);
    }
    std::cout << static_cast<int>(loop.state()) << ' ' << commands << ' ' << refusal;
    for (const double torque : loop.torque()) {
      std::cout << ' ' << torque;
    }
    std::cout << '\n';
  }
  return 0;
}
