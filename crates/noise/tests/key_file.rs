//! The sources of keys.

use antinoise_noise::{Error, Key, KeyedRng, Purpose, RunId};
use rand_core::Rng;

/// A number that determines the key.
fn draw(key: &Key) -> u64 {
    KeyedRng::new(key, &RunId::default(), Purpose::DataOrder, 0).next_u64()
}

fn key_file(text: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn from_text(text: &[u8]) -> Result<Key, Error> {
    Key::from_file(key_file(text).path())
}

#[test]
fn raw_and_hexadecimal_files_give_the_same_key() {
    let bytes: [u8; 32] = std::array::from_fn(|i| (i * 7 + 200) as u8);
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let drawn = |text: &[u8]| draw(&from_text(text).unwrap());
    assert_eq!(drawn(hex.as_bytes()), drawn(&bytes));
    assert_eq!(drawn(format!(" {}\n", hex.to_uppercase()).as_bytes()), drawn(&bytes));
    assert_ne!(drawn(&[&bytes[1..], &[7]].concat()), drawn(&bytes));
}

#[test]
fn any_other_file_is_refused_without_printing_it() {
    for text in [&b""[..], b"abc", &[b'g'; 64], &[b'a'; 63], &[b'a'; 65], &[7; 33], &[b'a'; 4096]] {
        let message = from_text(text).unwrap_err().to_string();
        assert!(message.starts_with("key file is ") && !message.contains("aaa"), "{message}");
    }
    assert!(matches!(Key::from_file("no such file"), Err(Error::Io { .. })));
}

/// A key file must be read to its end: a file of two keys, cut at 1024 bytes, would pass for the first key.
#[test]
fn a_file_is_read_to_its_end_or_refused() {
    let digits = b"0123456789abcdefFEDCBA98765432100123456789abcdefFEDCBA9876543210";
    for spaces in [0, 959, 960] {
        assert!(from_text(&[&digits[..], &vec![b' '; spaces]].concat()).is_ok(), "{spaces} spaces");
    }
    for end in [&digits[..], b"\n"] {
        let message = from_text(&[&digits[..], &[b' '; 960], end].concat()).unwrap_err().to_string();
        assert!(message.contains("with more than 1024 bytes but must be 32 random bytes"), "{message}");
    }
}

#[test]
fn a_file_of_one_byte_over_and_over_is_no_key() {
    for text in [
        &[0; 32][..],
        &[b'0'; 64],
        &[0xAA; 32],
        &[b'a'; 64],
        b"\n00000000000000000000000000000000\
        00000000000000000000000000000000\n",
    ] {
        let message = from_text(text).unwrap_err().to_string();
        assert!(message.contains("the same byte 32 times"), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_for_others_is_refused_and_a_link_is_followed() {
    use std::os::unix::fs::PermissionsExt;
    let file = key_file(b"0123456789abcdefFEDCBA9876543210");
    for (mode, taken) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)] {
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        match Key::from_file(file.path()) {
            Ok(_) => assert!(taken, "{mode:o}"),
            Err(error) => assert!(!taken && error.to_string().contains("chmod 600"), "{mode:o}: {error}"),
        }
    }
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(file.path(), &link).unwrap();
    assert!(Key::from_file(&link).is_ok());
    let message = Key::from_file(folder.path()).unwrap_err().to_string();
    assert!(message.contains("not a regular file"), "{message}");
    assert!(Key::from_file("/dev/zero").unwrap_err().to_string().contains("not a regular file"));
}

#[test]
fn keys_differ_and_are_not_printed() {
    assert_ne!(draw(&Key::from_os().unwrap()), draw(&Key::from_os().unwrap()));
    assert_ne!(draw(&Key::from_seed_insecure(0)), draw(&Key::from_seed_insecure(1)));
    assert_eq!(format!("{:?}", Key::from_seed_insecure(3)), "Key(..)");
}
