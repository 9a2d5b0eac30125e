//! Key files: 32 bytes or 64 digits, and nothing else.

use antinoise_input::BadInput;
use antinoise_noise::Key;

use crate::files::file;

/// A file is a key exactly where the documentation says so, and then that key.
pub fn run(data: &[u8]) -> bool {
    let path = file("key", data);
    let found = Key::from_file(path).map(|key| key.expose(|bytes| *bytes));
    match (found, expected(data)) {
        (Ok(found), Some(expected)) => assert_eq!(found, expected),
        (Err(error), None) => assert!(error.is_bad_input(), "{error:?}"),
        (found, expected) => panic!("{found:?} of a file that should be {expected:?}"),
    }
    true
}

fn expected(data: &[u8]) -> Option<[u8; 32]> {
    let key: [u8; 32] = match data.try_into() {
        Ok(raw) => raw,
        Err(_) => {
            let digits = std::str::from_utf8(data.trim_ascii()).ok()?;
            if data.len() > 1024 || digits.len() != 64 || !digits.bytes().all(|c| c.is_ascii_hexdigit()) {
                return None;
            }
            std::array::from_fn(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).expect("two digits"))
        }
    };
    key.iter().any(|&byte| byte != key[0]).then_some(key)
}

pub fn seeds() -> Vec<Vec<u8>> {
    let raw: Vec<u8> = (0..32).collect();
    let digits: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
    let long = format!("{digits}{:960}{}", "", digits.to_uppercase());
    vec![raw, format!(" {digits}\r\n").into_bytes(), digits.to_uppercase().into_bytes(), long.into_bytes()]
}
