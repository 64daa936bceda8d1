// Exported C beside Pinocchio's C++ on the same states: largest differences, and nanoseconds a call.
//   exported_c ARM.so MODEL STATES     MODEL: by saveToBinary of Pinocchio; STATES: doubles, q qd qdd of each state
// Prints: number of states, largest difference of gravity and of inverse dynamics relative to the largest torque,
// nanoseconds of gravity (ours, Pinocchio's) and of inverse dynamics (ours, Pinocchio's), medians over rounds.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <vector>

#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/serialization.hpp>

namespace {
using Gravity = void (*)(const double *, const void *, double *);
using Dynamics = void (*)(const double *, const double *, const double *, const void *, double *);
volatile double sink;
constexpr int kRounds = 51;

double nanoseconds(std::size_t states, const std::function<double()> &round) {
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    sink = round();
    times.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2] / static_cast<double>(states);
}
}  // namespace

int main(int, char **arguments) {
  void *library = dlopen(arguments[1], RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto gravity = reinterpret_cast<Gravity>(dlsym(library, "arm_gravity_torque"));
  const auto dynamics = reinterpret_cast<Dynamics>(dlsym(library, "arm_inverse_dynamics"));

  pinocchio::Model model;
  pinocchio::serialization::loadFromBinary(model, arguments[2]);
  pinocchio::Data data(model);

  const std::size_t n = static_cast<std::size_t>(model.nv);
  std::ifstream file(arguments[3], std::ios::binary);
  file.seekg(0, std::ios::end);
  std::vector<double> numbers(static_cast<std::size_t>(file.tellg()) / sizeof(double));
  file.seekg(0);
  file.read(reinterpret_cast<char *>(numbers.data()), static_cast<std::streamsize>(numbers.size() * sizeof(double)));
  const std::size_t states = numbers.size() / (3 * n);

  std::vector<Eigen::VectorXd> configuration(states), velocity(states), acceleration(states);
  for (std::size_t k = 0; k < states; ++k) {
    const double *state = &numbers[3 * n * k];
    configuration[k].resize(model.nq);
    for (std::size_t i = 0; i < n; ++i) {
      const int at = model.joints[i + 1].idx_q();
      if (model.joints[i + 1].nq() == 1) {
        configuration[k][at] = state[i];
      } else {  // continuous
        configuration[k][at] = std::cos(state[i]);
        configuration[k][at + 1] = std::sin(state[i]);
      }
    }
    velocity[k] = Eigen::Map<const Eigen::VectorXd>(state + n, static_cast<Eigen::Index>(n));
    acceleration[k] = Eigen::Map<const Eigen::VectorXd>(state + 2 * n, static_cast<Eigen::Index>(n));
  }

  Eigen::VectorXd ours(n);
  double off[2] = {0.0, 0.0}, largest[2] = {0.0, 0.0};
  for (std::size_t k = 0; k < states; ++k) {
    const double *state = &numbers[3 * n * k];
    gravity(state, nullptr, ours.data());
    const Eigen::VectorXd g = pinocchio::computeGeneralizedGravity(model, data, configuration[k]);
    off[0] = std::max(off[0], (ours - g).cwiseAbs().maxCoeff());
    largest[0] = std::max(largest[0], g.cwiseAbs().maxCoeff());
    dynamics(state, state + n, state + 2 * n, nullptr, ours.data());
    const Eigen::VectorXd t = pinocchio::rnea(model, data, configuration[k], velocity[k], acceleration[k]);
    off[1] = std::max(off[1], (ours - t).cwiseAbs().maxCoeff());
    largest[1] = std::max(largest[1], t.cwiseAbs().maxCoeff());
  }

  const double times[4] = {
      nanoseconds(states,
                  [&] {
                    double sum = 0.0;
                    for (std::size_t k = 0; k < states; ++k) gravity(&numbers[3 * n * k], nullptr, ours.data()), sum += ours[0];
                    return sum;
                  }),
      nanoseconds(states,
                  [&] {
                    double sum = 0.0;
                    for (std::size_t k = 0; k < states; ++k)
                      sum += pinocchio::computeGeneralizedGravity(model, data, configuration[k])[0];
                    return sum;
                  }),
      nanoseconds(states,
                  [&] {
                    double sum = 0.0;
                    for (std::size_t k = 0; k < states; ++k) {
                      const double *state = &numbers[3 * n * k];
                      dynamics(state, state + n, state + 2 * n, nullptr, ours.data());
                      sum += ours[0];
                    }
                    return sum;
                  }),
      nanoseconds(states,
                  [&] {
                    double sum = 0.0;
                    for (std::size_t k = 0; k < states; ++k)
                      sum += pinocchio::rnea(model, data, configuration[k], velocity[k], acceleration[k])[0];
                    return sum;
                  }),
  };
  std::printf("%zu %.3g %.3g %.1f %.1f %.1f %.1f\n", states, off[0] / std::max(largest[0], 1e-12), off[1] / largest[1],
              times[0], times[1], times[2], times[3]);
  return 0;
}
