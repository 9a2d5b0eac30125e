//! Leaves Python's symbols to the interpreter that loads the library, on systems whose linkers need a flag
//! for that.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
