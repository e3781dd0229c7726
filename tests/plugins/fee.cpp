// A static library of a plugin. Its variable is one for each process (STB_GNU_UNIQUE), unless the
// plugin keeps the library's symbols to itself.
namespace fees {

inline long& fee() {
  static long fee = HAPAX_TEST_FEE;
  return fee;
}

long with_fee(long amount) { return amount + fee(); }

}  // namespace fees
