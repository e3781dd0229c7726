// The hapax binary: the whole command line, with handlers from plugins.
#include "hapax/main.hpp"

int main(int argc, char** argv) { return hapax::Main().run(argc, argv); }
