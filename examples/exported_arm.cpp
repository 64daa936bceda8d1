// Call exported C code from C++: gravity torque and effort limit of each joint at a pose, with and without a payload.
//   dynid export --model identified.yaml --urdf arm.urdf --to c --output arm.h
//   cc -std=c99 -O2 -c arm.c && c++ -std=c++17 exported_arm.cpp arm.o -o exported_arm && ./exported_arm 0.1 -0.5 ...
#include <array>
#include <cstdio>
#include <cstdlib>

#include "arm.h"

int main(int count, char **arguments) {
  std::array<double, ARM_JOINTS> q{}, empty{}, loaded{};
  for (int i = 0; i < ARM_JOINTS && i + 1 < count; ++i) q[i] = std::atof(arguments[i + 1]);

  const arm_load load{2.0, {0.0, 0.0, 0.1}, {}};  // 2 kg, center of mass 10 cm along z of the tip link
  arm_gravity_torque(q.data(), nullptr, empty.data());
  arm_gravity_torque(q.data(), &load, loaded.data());
  for (int i = 0; i < ARM_JOINTS; ++i)
    std::printf("%s %.6f %.6f of %g %s\n", arm_joint_names[i], empty[i], loaded[i], arm_effort_limit[i],
                arm_prismatic[i] ? "N" : "N m");
  return 0;
}
