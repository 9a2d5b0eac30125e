//! k-means of a stream: the cost of published centres relative to Lloyd's iterations on the points
//! themselves, for a release and for independent noise of the same budget.
//!
//! ```sh
//! cargo run --release -p antinoise-release --example kmeans -- 100 60 300 16
//! ```
//!
//! Arguments: simulated streams, periods, rows per period, cells of each of two columns. Each stream is a key
//! of one release: five random Gaussian clusters in the unit square. A user has one row in each of seven
//! consecutive periods; epsilon is 1, delta 1e-6. The cost of a set of centres is the sum over all points so
//! far of the squared distance to the nearest centre.

use antinoise_mechanism::Workload;
use antinoise_plan::{Length, Request, Setting, choose};
use antinoise_release::{Axis, Period, Query, Release, Settings, Unit, kmeans};

const CENTRES: usize = 5;
const MAX_PERIODS: usize = 7;
const DEVIATIONS: [f64; 2] = [0.03, 0.08];

type Point = [f64; 2];

/// SplitMix64, and normals by Box and Muller.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

fn squared_distance(p: &Point, q: &[f64]) -> f64 {
    (p[0] - q[0]).powi(2) + (p[1] - q[1]).powi(2)
}

fn nearest(point: &Point, centres: &[Vec<f64>]) -> usize {
    let order = |x: &usize, y: &usize| {
        squared_distance(point, &centres[*x]).total_cmp(&squared_distance(point, &centres[*y]))
    };
    (0..centres.len()).min_by(order).unwrap_or(0)
}

fn cost(points: &[Point], centres: &[Vec<f64>]) -> f64 {
    points.iter().map(|point| squared_distance(point, &centres[nearest(point, centres)])).sum()
}

/// Lloyd's iterations on the points themselves.
fn lloyd(points: &[Point], mut centres: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for _ in 0..50 {
        let mut sums = vec![[0.0; 3]; centres.len()];
        for point in points {
            let sum = &mut sums[nearest(point, &centres)];
            (sum[0], sum[1], sum[2]) = (sum[0] + point[0], sum[1] + point[1], sum[2] + 1.0);
        }
        for (centre, sum) in centres.iter_mut().zip(sums).filter(|(_, sum)| sum[2] > 0.0) {
            *centre = vec![sum[0] / sum[2], sum[1] / sum[2]];
        }
    }
    centres
}

fn axes(cells: usize) -> Vec<Axis> {
    let axis = |name: &str| Axis { column: name.into(), low: 0.0, high: 1.0, cells };
    ["x", "y"].map(axis).to_vec()
}

fn counted(points: &[Point], cells: usize) -> Vec<f64> {
    let mut rows = vec![0.0; cells * cells];
    let cell = |x: f64| ((x * cells as f64) as usize).min(cells - 1);
    points.iter().for_each(|point| rows[cell(point[0]) * cells + cell(point[1])] += 1.0);
    rows
}

/// The standard deviation of a cell after each period, if each period's noise is independent of the others'.
fn independent(settings: &Settings) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let setting = Setting::Federated { min_sep: 1, max_participations: Some(settings.max_periods) };
    let request = Request {
        specs: Some(vec!["identity".parse()?]),
        epsilon: settings.epsilon,
        delta: settings.delta,
        workload: Workload::Prefix,
        clip_norm: 1.0,
        ..Request::new(1, 1, Length::Steps(settings.periods), setting)
    };
    let plan = choose(&request)?.plan;
    let rows = plan.strategy.row_errors(&Workload::Prefix)?;
    Ok(rows.into_iter().map(|row| row * plan.noise_std()).collect())
}

/// A mean and its standard error.
fn mean(numbers: &[f64]) -> String {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    format!("{mean:.2} ± {:.2}", (variance / n).sqrt())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let mut next = |default: usize| arguments.next().unwrap_or(Ok(default));
    let (streams, periods, rows, cells) = (next(100)?, next(60)?, next(300)?, next(16)?);
    println!(
        "{streams} streams of {rows} rows in each of {periods} periods; {CENTRES} centres; {cells} x {cells} cells. Costs over those of Lloyd's \
         iterations on the points, means and their standard errors:\n"
    );
    println!(
        "| deviation of a cluster | rows | standard deviation of a cell's rows | cells without noise | this release | independent noise: of a cell | cost |"
    );
    println!("|---|---|---|---|---|---|---|");
    for deviation in DEVIATIONS {
        compare(streams, periods, rows, cells, deviation)?;
    }
    Ok(())
}

fn compare(
    streams: usize,
    periods: usize,
    rows: usize,
    cells: usize,
    deviation: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let query = Query::Kmeans { centres: CENTRES, axes: axes(cells) };
    let names: Vec<String> = (0..streams).map(|stream| stream.to_string()).collect();
    let queries = vec![(query.clone(), 1.0)];
    let settings =
        Settings { max_periods: MAX_PERIODS, queries, ..Settings::new(names.clone(), periods, Unit::User) };
    let folder = tempfile::tempdir()?;
    let mut release = Release::create(folder.path(), &settings)?;
    let (own, independent) = (release.errors(&query)?, independent(&settings)?);
    let mut random = Random(1);
    let middles: Vec<[Point; CENTRES]> = (0..streams)
        .map(|_| [(); CENTRES].map(|()| [0.1 + 0.8 * random.uniform(), 0.1 + 0.8 * random.uniform()]))
        .collect();
    let mut points: Vec<Vec<Point>> = vec![Vec::new(); streams];
    for period in 0..periods {
        let mut freezing = release.freeze(&Period::Number(period as i64))?;
        for (stream, name) in names.iter().enumerate() {
            for row in 0..rows {
                let middle = middles[stream][row % CENTRES];
                let point = middle.map(|x| (x + deviation * random.normal()).clamp(0.0, 1.0));
                let user = format!("{stream} {row} {}", period / MAX_PERIODS);
                freezing.add_point(&user, name, None, &point)?;
                points[stream].push(point);
            }
        }
        freezing.commit()?;
        let published = release.publish()?;
        if ![periods.div_ceil(8), periods.div_ceil(4), periods.div_ceil(2), periods].contains(&(period + 1)) {
            continue;
        }
        let mut costs = [vec![], vec![], vec![]];
        for (points, told) in points.iter().zip(published.chunks(3 * CENTRES)) {
            let near = kmeans(CENTRES, &axes(128), &counted(points, 128), 0.0)?;
            let least = cost(points, &lloyd(points, near));
            let exact = counted(points, cells);
            let noisy: Vec<f64> =
                exact.iter().map(|rows| rows + independent[period] * random.normal()).collect();
            let own: Vec<Vec<f64>> =
                told.chunks(3).map(|of| of[..2].iter().map(|row| row.value.value()).collect()).collect();
            let others = [
                kmeans(CENTRES, &axes(cells), &exact, 0.0)?,
                own,
                kmeans(CENTRES, &axes(cells), &noisy, independent[period])?,
            ];
            costs
                .iter_mut()
                .zip(others)
                .for_each(|(costs, centres)| costs.push(cost(points, &centres) / least));
        }
        let [exact, private, other] = costs.map(|costs| mean(&costs));
        println!(
            "| {deviation} | {} | {:.0} | {exact} | {private} | {:.0} | {other} |",
            (period + 1) * rows,
            own[period],
            independent[period]
        );
    }
    Ok(())
}
