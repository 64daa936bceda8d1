// Gravity feed-forward with the promises of dynid_ros' node `gravity_compensation`: ramps, limits, rates, staleness,
// scale and load. It needs no ROS, allocates nothing and waits for nothing. It follows dynid_ros.control step by step.
#ifndef DYNID_GRAVITY_LOOP_HPP
#define DYNID_GRAVITY_LOOP_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace dynid
{

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Phase of the compensation.
enum class State { disabled, ramping_in, active, ramping_out, fault };

// Reason of a refusal or of a fault.
enum class Reason {
  none,
  no_state,
  not_finite,
  beyond_limits,
  stale,
  jump,
  alternating,
  gravity_not_finite,
  start_beyond_limits,
  torque_beyond_limits,
  interrupted
};

// Description of a reason, for the log.
inline const char * describe(Reason reason)
{
  switch (reason) {
    case Reason::none: return "none";
    case Reason::no_state: return "there is no joint state yet";
    case Reason::not_finite: return "a position is not finite";
    case Reason::beyond_limits: return "a position is beyond the joint limits and limit_margin";
    case Reason::stale: return "the joint states are too old";
    case Reason::jump: return "a position jumped faster than the velocity limit";
    case Reason::alternating: return "the positions alternate between two values";
    case Reason::gravity_not_finite: return "the gravity torque is not finite";
    case Reason::start_beyond_limits: return "the torque to begin with is beyond the effort limit";
    case Reason::torque_beyond_limits: return "the present torque is beyond the new limits";
    case Reason::interrupted: return "interrupted";
  }
  return "unknown";
}

// Limits of N joints in rad, rad/s, N m, N m/s (prismatic: m, m/s, N, N/s), and durations in s.
template <std::size_t N>
struct Settings
{
  std::array<double, N> gain{};      // factor on the gravity torque
  std::array<double, N> torque{};    // largest torque
  std::array<double, N> rate{};      // fastest change of the torque
  std::array<double, N> lower{};     // smallest plausible position
  std::array<double, N> upper{};     // largest plausible position
  std::array<double, N> velocity{};  // velocity limit; infinite if unknown
  double ramp_time = 2.0;
  double fault_ramp_time = 0.5;
  double timeout = 0.2;
  double hold_on_silence = 0.0;
};

// Plausibility of positions: their values, their age, and their distance from the positions before.
template <std::size_t N>
class StateCheck
{
public:
  using Vector = std::array<double, N>;

  Reason unfit = Reason::no_state;
  Vector position{};
  bool has_position = false;

  void accept(double time, const Vector & q, double stamp)
  {
    position = q;
    has_position = true;
    unfit = Reason::none;
    time_ = time;
    stamp_ = stamp;
  }

  Reason stale(double time, double timeout) const
  {
    return time - time_ <= timeout ? Reason::none : Reason::stale;
  }

  Reason alternating(double time) const
  {
    return time - jump_times_[0] < kAlternation ? Reason::alternating : Reason::none;
  }

  static Reason problem(const Vector & q, const Settings<N> & joints)
  {
    for (std::size_t i = 0; i < N; ++i) {
      if (!std::isfinite(q[i])) {
        return Reason::not_finite;
      }
      if (!(joints.lower[i] <= q[i] && q[i] <= joints.upper[i])) {
        return Reason::beyond_limits;
      }
    }
    return Reason::none;
  }

  Reason jump(double time, const Vector & q, double stamp, const Settings<N> & joints) const
  {
    if (!has_position) {
      return Reason::none;
    }
    double span = time - time_ + joints.timeout;
    if (stamp > stamp_) {  // false where one of them is NaN, which means unknown
      span = std::min(span, stamp - stamp_ + kStampJitter);
    }
    for (std::size_t i = 0; i < N; ++i) {
      if (std::abs(q[i] - position[i]) > joints.velocity[i] * span) {
        return Reason::jump;
      }
    }
    return Reason::none;
  }

  void remember(double time) { jump_times_ = {jump_times_[1], time}; }

private:
  static constexpr double kStampJitter = 0.05;
  static constexpr double kAlternation = 1.0;
  double time_ = -kInfinity;
  double stamp_ = std::numeric_limits<double>::quiet_NaN();
  std::array<double, 2> jump_times_{-kInfinity, -kInfinity};
};

// Torque `scale * target + weight * start`, which changes by at most the rate times the time between two commands.
template <std::size_t N>
class TorqueRamp
{
public:
  using Vector = std::array<double, N>;

  Vector torque{};
  double scale = 0.0;
  double weight = 0.0;

  void begin(const Vector & start)
  {
    torque = start_ = start;
    scale = 0.0;
    weight = 1.0;
    time_ = kInfinity;
    held_until_ = -kInfinity;
  }

  void shift(const Vector & difference)
  {
    for (std::size_t i = 0; i < N; ++i) {
      start_[i] = weight * start_[i] + scale * difference[i];
    }
    weight = 1.0;
  }

  Vector fade(double time)
  {
    scale = 1.0;
    weight = 0.0;
    time_ = time;
    held_until_ = -kInfinity;
    return torque;
  }

  void hold(double until = -kInfinity) { held_until_ = until; }

  bool is_zero() const
  {
    return std::all_of(torque.begin(), torque.end(), [](double value) { return value == 0.0; });
  }

  // One command; `pace` is the change of the scale and `weight_pace` that of the weight, 1/s.
  const Vector & step(
    double time, const Vector & target, const Settings<N> & joints, double pace, double weight_pace)
  {
    if (time < held_until_) {
      time_ = std::max(time, time_);
      return torque;
    }
    const double longest = kMaxStepPeriods * std::max(period_, kMinStepPeriod);
    const double elapsed = std::min(std::max(time - time_, 0.0), longest);
    if (std::isfinite(time_) && time > time_) {
      const double interval = std::min(time - time_, 2.0 * period_);
      period_ += kPeriodShare * (interval - period_);
    }
    time_ = std::isinf(time_) ? time : std::max(time, time_);
    scale = std::min(std::max(scale + elapsed * pace, 0.0), 1.0);
    weight = std::min(std::max(weight + elapsed * weight_pace, 0.0), 1.0);
    for (std::size_t i = 0; i < N; ++i) {
      const double change = joints.rate[i] * elapsed;
      const double limit = joints.torque[i];
      const double wanted = scale * target[i] + std::min(std::max(weight * start_[i], -limit), limit);
      torque[i] = std::min(std::max(wanted, torque[i] - change), torque[i] + change);
    }
    return torque;
  }

private:
  static constexpr double kMaxStepPeriods = 3.0;
  static constexpr double kMinStepPeriod = 0.01;
  static constexpr double kPeriodShare = 0.1;
  Vector start_{};
  double time_ = -kInfinity;
  double held_until_ = -kInfinity;
  double period_ = kMinStepPeriod;
};

// Compensation torque, updated with each joint state; all times are seconds of one steady clock.
//
// Load is the load of the exported C, and `gravity(q, load, torque)` its gravity torque, for example `arm_load` and
// `arm_gravity_torque`. Faults take the torque to zero within `fault_ramp_time` and stay until `enable`.
template <std::size_t N, class Load>
class GravityLoop
{
public:
  using Vector = std::array<double, N>;
  using Gravity = void (*)(const double *, const Load *, double *);

  GravityLoop(Gravity gravity, const Settings<N> & settings) : gravity_(gravity), settings_(settings) {}

  State state() const { return state_; }
  Reason fault_reason() const { return fault_reason_; }
  const Vector & torque() const { return ramp_.torque; }
  const Settings<N> & settings() const { return settings_; }
  bool at_rest() const
  {
    return (state_ == State::disabled || state_ == State::fault) && ramp_.is_zero();
  }

  // Ramp in, from the torque that acts already (zero by default); this also acknowledges a fault.
  Reason enable(double time, const Vector & start = Vector{})
  {
    if (is_enabled()) {
      return Reason::none;
    }
    for (const Reason unfit :
      {check_.unfit, check_.stale(time, settings_.timeout), check_.alternating(time)}) {
      if (unfit != Reason::none) {
        return unfit;
      }
    }
    if (!is_following()) {
      Vector first = ramp_.torque;
      if (ramp_.is_zero() && at_rest()) {
        for (std::size_t i = 0; i < N; ++i) {
          const double limit = settings_.torque[i];
          if (!(std::abs(start[i]) <= (1.0 + kStartMargin) * limit)) {
            return Reason::start_beyond_limits;
          }
          first[i] = std::min(std::max(start[i], -limit), limit);
        }
      }
      ramp_.begin(first);
      fades_ = false;
    }
    fault_reason_ = Reason::none;
    change_time_ = settings_.ramp_time;
    state_ = State::ramping_in;
    return Reason::none;
  }

  // Ramp out; this also acknowledges a fault, while its ramp continues.
  void disable()
  {
    if (state_ == State::disabled) {
      return;
    }
    fault_reason_ = Reason::none;
    ramp_.hold();
    state_ = at_rest() ? State::disabled : State::ramping_out;
  }

  // Ramp to zero within `fault_ramp_time`, because the controller must end.
  void stop(double time)
  {
    fault_reason_ = Reason::none;
    if (at_rest()) {
      state_ = State::disabled;
      return;
    }
    state_ = State::ramping_out;
    if (!fades_) {
      fade_out(time);
    }
    ramp_.hold();
  }

  // End with a fault.
  void interrupt(double time, Reason reason = Reason::interrupted)
  {
    if (!is_following()) {
      ramp_.hold();
      return;
    }
    fade_out(time);
    fault_reason_ = reason;
    state_ = State::fault;
    ramp_.hold();
  }

  // Begin anew with the same settings and load, when a controller is activated again: its time may start at zero.
  void restart()
  {
    GravityLoop fresh(gravity_, settings_);
    fresh.has_load_ = has_load_;
    fresh.load_ = load_;
    *this = fresh;
  }

  // Change the load, nullptr for none; its torque comes in within 0.3 s.
  void set_load(const Load * load)
  {
    const Load value = load == nullptr ? Load{} : *load;
    change(settings_, load != nullptr, value, std::min(settings_.ramp_time, kLoadChange));
  }

  // Change limits, gains and durations; another gain comes in within `ramp_time`.
  Reason adjust(const Settings<N> & settings)
  {
    for (std::size_t i = 0; i < N; ++i) {
      if (std::abs(ramp_.torque[i]) > settings.torque[i]) {
        return Reason::torque_beyond_limits;
      }
    }
    if (settings.gain == settings_.gain) {
      settings_ = settings;
    } else {
      change(settings, has_load_, load_, settings.ramp_time);
    }
    return Reason::none;
  }

  // Process one joint state; `stamp` is its time by the driver's clock, NaN if unknown. Returns whether to command.
  bool update(double time, const Vector & q, double stamp = std::numeric_limits<double>::quiet_NaN())
  {
    Reason problem = check_.problem(q, settings_);
    if (problem == Reason::none) {
      const Reason jump = check_.jump(time, q, stamp, settings_);
      if (is_following()) {
        problem = check_.stale(time, settings_.timeout);
        problem = problem == Reason::none ? jump : problem;
      } else if (jump != Reason::none) {
        check_.remember(time);
      }
    }
    if (problem != Reason::none) {
      return reject(time, problem);
    }
    check_.accept(time, q, stamp);
    if (!is_following()) {
      return fade(time);
    }
    Vector target{};
    if (!gravity_target(target)) {
      return reject(time, Reason::gravity_not_finite);
    }
    step(time, target);
    return true;
  }

  // Look for silence and drive ramps between joint states. Returns whether to command.
  bool watch(double time)
  {
    if (is_following() && check_.stale(time, settings_.timeout) != Reason::none) {
      check_.unfit = Reason::stale;
      interrupt(time, Reason::stale);
      ramp_.hold(time + settings_.hold_on_silence);
    }
    return fade(time);
  }

private:
  static constexpr double kStartMargin = 0.05;
  static constexpr double kLoadChange = 0.3;
  static constexpr double kBackPace = 3.0;

  bool is_enabled() const { return state_ == State::ramping_in || state_ == State::active; }
  bool is_following() const { return state_ != State::disabled && !fades_; }

  bool reject(double time, Reason reason)
  {
    check_.unfit = reason;
    interrupt(time, reason);
    return fade(time);
  }

  bool gravity_target(Vector & target) const
  {
    gravity_(check_.position.data(), has_load_ ? &load_ : nullptr, target.data());
    bool finite = true;
    for (std::size_t i = 0; i < N; ++i) {
      finite = finite && std::isfinite(target[i]);
      target[i] = std::min(std::max(settings_.gain[i] * target[i], -settings_.torque[i]), settings_.torque[i]);
    }
    return finite;
  }

  void change(const Settings<N> & settings, bool has_load, const Load & load, double span)
  {
    Vector before{};
    Vector after{};
    const bool known_before = check_.has_position && gravity_target(before);
    settings_ = settings;
    has_load_ = has_load;
    load_ = load;
    const bool known_after = check_.has_position && gravity_target(after);
    if (!(is_following() && known_before && known_after)) {
      return;
    }
    for (std::size_t i = 0; i < N; ++i) {
      before[i] -= after[i];
    }
    ramp_.shift(before);
    change_time_ = span;
  }

  void fade_out(double time)
  {
    held_ = ramp_.fade(time);
    fades_ = true;
  }

  bool fade(double time)
  {
    if (!fades_ || at_rest()) {
      return false;
    }
    const double pace = -1.0 / settings_.fault_ramp_time;
    ramp_to(time, held_, pace, pace);
    return true;
  }

  void step(double time, const Vector & target)
  {
    const double pace = 1.0 / settings_.ramp_time;
    if (is_enabled()) {
      ramp_to(time, target, state_ == State::active ? kBackPace : pace, -1.0 / change_time_);
    } else {
      ramp_to(time, target, -pace, -pace);
    }
  }

  void ramp_to(double time, const Vector & target, double pace, double weight_pace)
  {
    ramp_.step(time, target, settings_, pace, weight_pace);
    if (state_ == State::ramping_in && ramp_.scale == 1.0) {
      state_ = State::active;
    } else if (state_ == State::ramping_out && ramp_.scale == 0.0 && ramp_.is_zero()) {
      state_ = State::disabled;
      fades_ = false;
    }
  }

  Gravity gravity_;
  Settings<N> settings_;
  State state_ = State::disabled;
  Reason fault_reason_ = Reason::none;
  StateCheck<N> check_;
  TorqueRamp<N> ramp_;
  Vector held_{};
  bool fades_ = false;
  bool has_load_ = false;
  Load load_{};
  double change_time_ = 2.0;
};

}  // namespace dynid

#endif
