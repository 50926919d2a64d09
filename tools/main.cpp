#include "tools/cli.hpp"

int main(int argc, char** argv) { return baregpu::tools::run(argc, argv); }
