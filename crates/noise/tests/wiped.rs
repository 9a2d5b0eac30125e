//! No secret is returned to the allocator: keys, keystream, seed noise and noise are overwritten first.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use antinoise_mechanism::Recursion;
use antinoise_noise::{Cipher, Grid, Key, NoiseStream, SeedNoise};

struct Inspecting;

static WATCHED: AtomicBool = AtomicBool::new(false);
/// Smaller blocks are not inspected: they hold lists of tiles, steps and threads.
static SMALLEST: AtomicUsize = AtomicUsize::new(0);
static SEEN: AtomicUsize = AtomicUsize::new(0);
static DIRTY: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Inspecting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises. Zeros, so that what was never written is clean.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if WATCHED.load(Ordering::Relaxed) && layout.size() >= SMALLEST.load(Ordering::Relaxed) {
            // SAFETY: the block is still the caller's, and was written when it was made.
            let bytes = unsafe { std::slice::from_raw_parts(pointer, layout.size()) };
            SEEN.fetch_add(1, Ordering::Relaxed);
            DIRTY.fetch_add(usize::from(bytes.iter().any(|&byte| byte != 0)), Ordering::Relaxed);
        }
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Inspecting = Inspecting;

/// Number of blocks of at least `smallest` bytes that dropping `value` frees, and number of those blocks that
/// are not all zeros.
fn dropped<T>(value: T, smallest: usize) -> (usize, usize) {
    SMALLEST.store(smallest, Ordering::Relaxed);
    SEEN.store(0, Ordering::Relaxed);
    DIRTY.store(0, Ordering::Relaxed);
    WATCHED.store(true, Ordering::Relaxed);
    drop(value);
    WATCHED.store(false, Ordering::Relaxed);
    (SEEN.load(Ordering::Relaxed), DIRTY.load(Ordering::Relaxed))
}

/// One test, so that no other thread of this program frees memory meanwhile.
#[test]
fn what_is_given_back_is_zeros() {
    assert_eq!(dropped(vec![1u8; 5000], 4096), (1, 1), "the allocator sees what is left");
    assert_eq!(dropped(Key::from_os().unwrap(), 1), (1, 0));

    let dim = 1000;
    let recursions = [
        Recursion::Independent,
        Recursion::Blt { scale: vec![0.3, 0.1], decay: vec![0.9, 0.5] },
        Recursion::AutoRegressive { taps: vec![1.0, 0.5, 0.375] },
        Recursion::MovingAverage { taps: vec![1.0, -0.5, -0.125] },
    ];
    for recursion in recursions {
        for cipher in [Cipher::Aes256Ctr, Cipher::ChaCha20] {
            for budget in [0, u64::MAX] {
                let builder = NoiseStream::builder(recursion.clone(), 4, dim, 1.0).cipher(cipher);
                let builder = builder.memory_budget(budget).look_ahead(1).threads(1);
                let mut out = vec![0.0; dim];
                let mut stream = builder.clone().build(Key::from_os().unwrap()).unwrap();
                (0..3).for_each(|_| stream.next_into(&mut out).unwrap());
                let (seen, dirty) = dropped(stream, 3500);
                assert!(seen >= 2 && dirty == 0, "{recursion:?}, {cipher:?}: {dirty} of {seen}");
                let grid = Grid::new(2f64.powi(-20)).unwrap();
                let mut stream = builder.grid(grid).build(Key::from_os().unwrap()).unwrap();
                (0..3).for_each(|_| stream.next_into(&mut out).unwrap());
                let (seen, dirty) = dropped(stream, 3500);
                assert!(seen >= 2 && dirty == 0, "{recursion:?}, {cipher:?}, on a grid: {dirty} of {seen}");
            }
        }
    }
    let mut seeds = SeedNoise::new(&Key::from_os().unwrap(), Cipher::ChaCha20);
    seeds.fill(0, 0, &mut [0.0; 5000]);
    seeds.fill_f64(0, 0, &mut [0.0; 5000]);
    let (seen, dirty) = dropped(seeds, 3500);
    assert!(seen >= 4 && dirty == 0, "{dirty} of {seen}");
}
