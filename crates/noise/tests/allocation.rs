//! A step allocates nothing, whatever the recursion and its placement: long runs neither fragment nor grow.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use antinoise_noise::{Error, Grid, Key, NoiseStream, Shard};
use common::{STEPS, cases};

struct Counting;

thread_local! {
    /// Of this thread: the program's others allocate when they like.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
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
    let before = ALLOCATIONS.get();
    (0..STEPS).for_each(step);
    ALLOCATIONS.get() - before
}

#[test]
fn a_step_allocates_nothing() {
    assert_eq!(allocations(|_| drop(black_box(vec![0u8; 9]))), STEPS, "allocations are seen");
    let dim = 9000;
    let stripes = (0..300).fold(Shard::default(), |shard, row| shard.and_range(30 * row..30 * row + 9));
    for shard in [Shard::of_range(0..dim), stripes] {
        let (sum, mut out) = (vec![0.0; shard.len()], vec![0.0; shard.len()]);
        for (name, recursion) in cases() {
            for budget in [0, 5 * 4 * dim, u64::MAX] {
                let builder = NoiseStream::builder(recursion.clone(), STEPS, dim as usize, 1.0)
                    .memory_budget(budget)
                    .shard(shard.clone())
                    .threads(1);
                let mut stream = builder.clone().build(Key::from_seed_insecure(1)).unwrap();
                let count = allocations(|step| {
                    let (some, others) = out.split_at_mut(1500);
                    match step % 3 {
                        0 => stream.next_into_slices(&mut [some, others]),
                        1 => stream.add_next_into_slices(&mut [some, others], 2.0),
                        _ => stream.next_into(&mut out),
                    }
                    .unwrap();
                });
                assert_eq!(count, 0, "{name}: {count} allocations with {}", stream.placement());
                if name.contains("combination") {
                    continue;
                }
                let grid = Grid::new(2f64.powi(-14)).unwrap();
                let mut stream = builder.clone().grid(grid).build(Key::from_seed_insecure(1)).unwrap();
                let count = allocations(|_| stream.add_to_sum(&sum, &mut out).unwrap());
                assert_eq!(count, 0, "{name} on a grid: {count} allocations with {}", stream.placement());
                let mut stream = builder.grid(grid).build(Key::from_seed_insecure(1)).unwrap();
                let mut noisy = sum.clone();
                let accept = |_| Ok::<(), Error>(());
                let count =
                    allocations(|_| stream.add_to_sum_in_place_if(&mut [&mut noisy], accept).unwrap());
                assert_eq!(count, 0, "{name} in place: {count} allocations with {}", stream.placement());
            }
        }
    }
}
