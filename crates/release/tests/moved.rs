//! A release stays in its folder when its process changes its current folder.

use antinoise_release::{Release, Settings, Unit};

fn counted(release: &mut Release, period: &str, rows: usize) -> Vec<f64> {
    let mut freezing = release.freeze(&period.parse().unwrap()).unwrap();
    for _ in 0..rows {
        freezing.add("", "a", None).unwrap();
    }
    freezing.commit().unwrap();
    release.publish().unwrap().iter().map(|row| row.value.value()).collect()
}

/// The only test of its program: all threads share the current folder.
#[test]
fn folders_are_found_from_anywhere() {
    let root = tempfile::tempdir().unwrap();
    let settings = Settings::new(vec!["a".into()], 2, Unit::Event);
    let go = |place: &str| {
        std::fs::create_dir_all(root.path().join(place)).unwrap();
        std::env::set_current_dir(root.path().join(place)).unwrap();
    };
    go("north");
    let mut north = Release::create("visits".as_ref(), &settings).unwrap();
    go("south");
    let mut south = Release::create("visits".as_ref(), &settings).unwrap();
    assert_eq!(north.folder(), root.path().canonicalize().unwrap().join("north/visits"));
    let secret = |place: &str| root.path().join(place).join("visits/secret");
    let of_south = std::fs::read(secret("south")).unwrap();
    counted(&mut north, "0", 3);
    counted(&mut north, "1", 3);
    assert!(north.is_complete() && !secret("north").exists());
    assert_eq!(std::fs::read(secret("south")).unwrap(), of_south);
    counted(&mut south, "0", 3);
    drop(south);
    Release::open("visits".as_ref()).unwrap();
}
