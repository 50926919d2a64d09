// The AMD card as a MockGpu, and the factory hook for its shader cores.
#pragma once
#include <functional>
#include <memory>

#include "mock/isa/executor.hpp"
#include "mock/mock.hpp"

namespace baregpu::mock {

using ExecutorFactory = std::function<std::unique_ptr<isa::Executor>(isa::Target, const isa::ExecutorOptions&)>;

/// A card whose shader cores come from `factory` (tests: a fake).
/// @throws UsageError for an unknown architecture or fault name.
std::shared_ptr<MockGpu> make_amd_card(const MockOptions& options, const ExecutorFactory& factory);

}  // namespace baregpu::mock
