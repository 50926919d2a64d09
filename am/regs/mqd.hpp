// Memory queue descriptors: dword positions of the fields that drivers set (Linux v11_structs.h: struct v11_compute_mqd).
#pragma once
#include <cstdint>

namespace baregpu::am {

constexpr unsigned kMqdDwords = 512;

/// Where the fields of a compute MQD are. Words first_hqd..first_hqd+hqd_count-1 mirror the HQD registers from
/// CP_MQD_BASE_ADDR on, in register order.
struct MqdLayout {
  uint16_t header;
  uint16_t static_thread_mgmt[8];
  uint16_t first_hqd, hqd_count;
  uint16_t mqd_base_lo, hqd_active, hqd_vmid, persistent_state, pipe_priority, queue_priority, quantum;
  uint16_t pq_base_lo, rptr_report_lo, wptr_poll_lo, doorbell_control, pq_control, ib_control, hq_status0, mqd_control;
  uint16_t eop_base_lo, eop_control, aql_control;
};

constexpr MqdLayout kMqdV11Compute = {
    .header = 0x00, .static_thread_mgmt = {0x17, 0x18, 0x1a, 0x1b, 0x2c, 0x2d, 0x2e, 0x2f}, .first_hqd = 0x80, .hqd_count = 56,
    .mqd_base_lo = 0x80, .hqd_active = 0x82, .hqd_vmid = 0x83, .persistent_state = 0x84, .pipe_priority = 0x85,
    .queue_priority = 0x86, .quantum = 0x87, .pq_base_lo = 0x88, .rptr_report_lo = 0x8b, .wptr_poll_lo = 0x8d,
    .doorbell_control = 0x8f, .pq_control = 0x91, .ib_control = 0x95, .hq_status0 = 0xa0, .mqd_control = 0xa2,
    .eop_base_lo = 0xa5, .eop_control = 0xa7, .aql_control = 0xb5,
};

}  // namespace baregpu::am
