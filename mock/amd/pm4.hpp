// The PM4 packet processor of compute queues.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "mock/amd/gfx.hpp"

namespace baregpu::mock {

/// Runs one packet of a queue. Thread: the compute engine's, with the card's lock.
class Pm4 {
 public:
  Pm4(Machine& m, Gfx& gfx, ComputeQueue& q, std::unique_lock<std::mutex>& lock)
      : m_(m), gfx_(gfx), q_(q), lock_(lock) {}
  /// kWorked: a packet was done; kBlocked: it waits for memory or a register; kIdle: nothing there, or hung.
  StepResult run_one();

 private:
  bool fetch(uint32_t skip, uint32_t* out, uint32_t n);
  void advance(uint32_t dwords);
  StepResult malformed(uint8_t source, const char* rule, const std::string& why, uint32_t length);
  StepResult execute(uint32_t op, const std::vector<uint32_t>& p, uint32_t length);
  StepResult set_registers(uint32_t op, const std::vector<uint32_t>& p, uint32_t length);
  StepResult wait_reg_mem(const std::vector<uint32_t>& p, uint32_t length);
  StepResult release_mem(const std::vector<uint32_t>& p, uint32_t length);
  StepResult write_data(const std::vector<uint32_t>& p, uint32_t length);
  StepResult copy_data(const std::vector<uint32_t>& p, uint32_t length);
  StepResult indirect_buffer(const std::vector<uint32_t>& p, uint32_t length);
  StepResult done(uint32_t length);
  StepResult stuck(const std::string& why);

  Machine& m_;
  Gfx& gfx_;
  ComputeQueue& q_;
  std::unique_lock<std::mutex>& lock_;
};

/// Comparison functions of WAIT_REG_MEM and POLL_REGMEM: 0 always, 1 <, 2 <=, 3 ==, 4 !=, 5 >=, 6 >.
bool compare(unsigned function, uint32_t value, uint32_t reference);

}  // namespace baregpu::mock
