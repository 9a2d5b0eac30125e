//! A step allocates nothing, whatever the recursion and its placement: long runs neither fragment nor grow.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use antinoise_noise::{Grid, Key, NoiseStream};
use common::{STEPS, cases};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of all steps.
fn allocations(step: impl FnMut(usize)) -> usize {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    (0..STEPS).for_each(step);
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// One test, so that no other thread of this program allocates meanwhile.
#[test]
fn a_step_allocates_nothing() {
    let dim = 9000;
    let (sum, mut out) = (vec![0.0; dim], vec![0.0; dim]);
    for (name, recursion) in cases() {
        for budget in [0, 5 * 4 * dim as u64, u64::MAX] {
            let builder =
                NoiseStream::builder(recursion.clone(), STEPS, dim, 1.0).memory_budget(budget).threads(1);
            let mut stream = builder.clone().build(Key::from_seed_insecure(1)).unwrap();
            let count = allocations(|step| {
                if step % 2 == 0 { stream.next_into(&mut out) } else { stream.add_next_into(&mut out, 2.0) }
                    .unwrap();
            });
            assert_eq!(count, 0, "{name}: {count} allocations with {}", stream.placement());
            if name.contains("combination") {
                continue;
            }
            let grid = Grid::new(2f64.powi(-14)).unwrap();
            let mut stream = builder.build_on_grid(grid, Key::from_seed_insecure(1)).unwrap();
            let count = allocations(|_| stream.release(&sum, &mut out).unwrap());
            assert_eq!(count, 0, "{name} on a grid: {count} allocations with {}", stream.placement());
        }
    }
}
