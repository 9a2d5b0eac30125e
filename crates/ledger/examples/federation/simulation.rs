//! A federation whose server is killed repeatedly: users of very different availability, rounds with the
//! plan's noise, and a check of the ledger by SQL only.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use antinoise_ledger::Ledger;
use antinoise_noise::{Key, NoiseStream};
use antinoise_plan::{Length, Plan, PrivacyUnit, Request, Setting, VerifiedPlan, choose};
use rusqlite::{Connection, OpenFlags};

/// The parameters of the simulation.
#[derive(Debug, Clone, Copy)]
pub struct Federation {
    pub users: usize,
    pub cohort: usize,
    pub rounds: usize,
    pub min_sep: usize,
    pub most: usize,
    pub dim: usize,
    /// Rounds between two saves of the noise's state.
    pub saved_every: usize,
    /// Number of updates of the cohort that are clipped and summed in a round.
    pub summed: usize,
}

type Failed = Box<dyn std::error::Error>;

const PLAN: &str = "plan.toml";
const LEDGER: &str = "ledger.db";
const NOISE: &str = "noise";
/// One line per round: nanoseconds spent in the ledger, in noise and in total, and the peak of memory in KiB.
const DIARY: &str = "diary";
/// Step and number of every charged user, written after the charge: eight bytes each.
const CHARGED: &str = "charged";

/// A generator for a simulation (splitmix64).
pub struct Draws(pub u64);

impl Draws {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Names are spread over the alphabet, as names of devices are.
fn name(user: u32) -> String {
    format!("{:016x}", mixed(u64::from(user) + 1))
}

/// A user who is available now: the r-th of all with a probability of about 1 / r (Zipf).
fn available(users: usize, draws: &mut Draws) -> u32 {
    ((users as f64 + 1.0).powf(draws.unit()) as usize).clamp(1, users) as u32 - 1
}

impl Federation {
    /// Makes the plan in `folder`.
    pub fn begin(&self, folder: &Path) -> Result<VerifiedPlan, Failed> {
        let setting = Setting::Federated { min_sep: self.min_sep, max_participations: Some(self.most) };
        let mut request = Request::new(self.users, self.cohort, Length::Steps(self.rounds), setting);
        (request.unit, request.dim, request.thorough) = (PrivacyUnit::User, self.dim, false);
        (request.epsilon, request.delta) = (4.0, 0.1 / self.users as f64);
        let plan = choose(&request)?.plan;
        plan.save(&folder.join(PLAN))?;
        Ok(plan)
    }

    /// One process of the server: from the point at which the last one was killed to the end of the run, or
    /// until it is killed.
    pub fn live(&self, folder: &Path) -> Result<(), Failed> {
        let mut life = Life::begin(*self, folder)?;
        while life.ledger.step() < self.rounds {
            life.round()?;
        }
        Ok(())
    }

    /// Kills processes at random moments until `kills` are done, and lets one finish. Returns the total time.
    pub fn kill(&self, folder: &Path, kills: usize, draws: &mut Draws, born: impl Fn() -> Child) -> Duration {
        let start = Instant::now();
        let mut moments: Vec<usize> = (0..kills).map(|_| draws.next() as usize % self.rounds).collect();
        moments.sort_unstable();
        for moment in moments {
            let mut child = born();
            while done(folder) < moment {
                if let Some(status) = child.try_wait().unwrap() {
                    // All rounds are done; one that a kill interrupted may be missing in the diary.
                    assert!(status.success(), "a life ended by itself: {status}");
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            // Within about two rounds, at any point; opening a ledger counts too.
            let round = start.elapsed().as_secs_f64() / done(folder).max(1) as f64;
            std::thread::sleep(Duration::from_secs_f64(2.0 * round.min(0.5) * draws.unit()));
            // It does not matter if the process ended normally at this moment.
            let _ = child.kill();
            child.wait().unwrap();
        }
        assert!(born().wait().unwrap().success());
        start.elapsed()
    }
}

/// Adds an update that is clipped to norm 1 to a sum.
fn add_clipped(update: &[f32], sum: &mut [f64]) {
    // Eight sums at a time, which a processor adds in parallel.
    let mut squares = [0.0; 8];
    for part in update.chunks_exact(8) {
        squares.iter_mut().zip(part).for_each(|(sum, &x)| *sum += f64::from(x) * f64::from(x));
    }
    let scale = 1.0 / squares.iter().sum::<f64>().sqrt().max(1.0);
    sum.iter_mut().zip(update).for_each(|(sum, &x)| *sum += scale * f64::from(x));
}

fn lines(folder: &Path) -> String {
    std::fs::read_to_string(folder.join(DIARY)).unwrap_or_default()
}

/// The rounds recorded in the diary.
fn done(folder: &Path) -> usize {
    std::fs::metadata(folder.join(DIARY)).map_or(0, |found| found.len() as usize / LINE)
}

/// Bytes of a line of the diary.
const LINE: usize = 52;

struct Life {
    of: Federation,
    folder: std::path::PathBuf,
    ledger: Ledger,
    noise: NoiseStream,
    draws: Draws,
    /// Updates that are used in turn: more than fit in a cache.
    updates: Vec<Vec<f32>>,
    sum: Vec<f64>,
    out: Vec<f32>,
    model: Vec<f32>,
    diary: File,
    charged: File,
    /// Time of opening the ledger in this process, reported with its first round.
    before: [Duration; 3],
}

impl Life {
    fn begin(of: Federation, folder: &Path) -> Result<Self, Failed> {
        let plan = Plan::load(&folder.join(PLAN))?;
        let start = Instant::now();
        let path = folder.join(NOISE);
        let begun = folder.join(LEDGER).exists();
        let builder = NoiseStream::builder(plan.strategy.recursion()?, plan.steps, of.dim, plan.noise_std())
            .context(plan.digest());
        let grid = plan.arithmetic.grid()?;
        let mut noise = if begun {
            builder.grid(grid).resume(&path)?
        } else {
            // Before the ledger begins, so that no ledger is without its noise.
            let stream = builder.grid(grid).build(Key::from_os()?)?;
            stream.save(&path)?;
            stream
        };
        let mut noise_time = start.elapsed();
        let opening = Instant::now();
        let ledger = Ledger::open(&folder.join(LEDGER), &plan, "0")?;
        let ledger_time = opening.elapsed();
        let seeking = Instant::now();
        noise.seek(ledger.step())?;
        noise_time += seeking.elapsed();
        let append = |name: &str| OpenOptions::new().append(true).create(true).open(folder.join(name));
        let seed = std::process::id() as u64 ^ (ledger.step() as u64) << 32;
        Ok(Self {
            of,
            folder: folder.to_path_buf(),
            ledger,
            noise,
            draws: Draws(seed),
            updates: vec![vec![0.25; of.dim]; of.summed.min(16)],
            sum: vec![0.0; of.dim],
            out: vec![0.0; of.dim],
            model: vec![0.0; of.dim],
            diary: append(DIARY)?,
            charged: append(CHARGED)?,
            before: [ledger_time, noise_time, start.elapsed()],
        })
    }

    fn round(&mut self) -> Result<(), Failed> {
        let (start, mut ledger_time) = (Instant::now(), Duration::ZERO);
        let mut timed = |time: Instant| ledger_time += time.elapsed();
        let (mut cohort, mut asked) = (Vec::new(), std::collections::HashSet::new());
        while cohort.len() < self.of.cohort {
            let there: Vec<u32> =
                (0..4 * self.of.cohort).map(|_| available(self.of.users, &mut self.draws)).collect();
            let names: Vec<String> = there.iter().map(|&user| name(user)).collect();
            let asking = Instant::now();
            let may = self.ledger.eligible(names.iter().map(String::as_str));
            timed(asking);
            // Eligible names are in the order of all users: both lists are walked together.
            let mut may = may.into_iter().peekable();
            for (user, name) in there.iter().zip(&names) {
                if may.next_if(|next| std::ptr::eq(*next, name.as_str())).is_some()
                    && cohort.len() < self.of.cohort
                    && asked.insert(*user)
                {
                    cohort.push((*user, name.clone()));
                }
            }
        }
        let names: Vec<&str> = cohort.iter().map(|(_, name)| name.as_str()).collect();
        let charging = Instant::now();
        let charged = self.ledger.charge(&names)?;
        timed(charging);
        let step = charged.step() as u32;
        let told: Vec<u8> =
            cohort.iter().flat_map(|(user, _)| [step, *user]).flat_map(u32::to_le_bytes).collect();
        self.charged.write_all(&told)?;
        // From this point on gradients may be used.
        self.sum.fill(0.0);
        (0..self.of.summed).for_each(|user| add_clipped(&self.updates[user % 16], &mut self.sum));
        let making = Instant::now();
        self.noise.add_to_sum(&self.sum, &mut self.out)?;
        let mut noise_time = making.elapsed();
        self.model.iter_mut().zip(&self.out).for_each(|(model, noisy)| *model -= 1e-3 * noisy);
        let recording = Instant::now();
        self.ledger.record_noisy_sum(charged, "", &[])?;
        timed(recording);
        // After the record: noise that is saved as used for a step that the ledger does not have could not
        // move back to that step when the next process starts.
        let saving = Instant::now();
        if self.noise.step().is_multiple_of(self.of.saved_every) {
            self.noise.save(self.folder.join(NOISE))?;
        }
        noise_time += saving.elapsed();
        let all = [ledger_time, noise_time, start.elapsed()];
        let told: Vec<u128> = all
            .iter()
            .zip(std::mem::take(&mut self.before))
            .map(|(time, before)| (*time + before).as_nanos())
            .collect();
        let line = format!("{:13} {:13} {:13} {:9}\n", told[0], told[1], told[2], peak());
        assert_eq!(line.len(), LINE);
        Ok(self.diary.write_all(line.as_bytes())?)
    }
}

/// The peak of memory of this process, in KiB; 0 if the system does not report it.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The results of the simulation.
#[derive(Debug)]
pub struct Account {
    pub seconds: f64,
    pub ledger_share: f64,
    pub noise_share: f64,
    pub peak_mib: f64,
    pub users: usize,
    pub participations: usize,
    pub least_gap: usize,
    pub most: usize,
    pub smallest_round: usize,
    pub noisy_sums: usize,
    pub bytes: u64,
}

impl std::fmt::Display for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seconds, ledger_share, noise_share, peak_mib, users, participations, .. } = self;
        let Self { least_gap, most, smallest_round, noisy_sums, bytes, .. } = self;
        writeln!(
            f,
            "{noisy_sums} rounds of {smallest_round} users or more in {seconds:.1} s; peak {peak_mib:.0} MiB"
        )?;
        writeln!(f, "ledger {:.1}% of it, noise {:.1}%", 100.0 * ledger_share, 100.0 * noise_share)?;
        writeln!(
            f,
            "{users} users took part {participations} times, {most} times each or less, {least_gap} steps apart or more"
        )?;
        write!(f, "ledger of {bytes} bytes")
    }
}

impl Federation {
    /// Counts participations in the file by SQL, and compares them with the charges that processes recorded.
    pub fn account(&self, folder: &Path) -> Result<Account, Failed> {
        let path = folder.join(LEDGER);
        let database = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let number = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|x| x as usize);
        let mut there = database.prepare("SELECT 1 FROM participations WHERE user = ? AND step = ?")?;
        let charged = std::fs::read(folder.join(CHARGED))?;
        for entry in charged.chunks_exact(8) {
            let of = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().expect("four bytes"));
            assert!(
                there.exists(rusqlite::params![name(of(4)), of(0)])?,
                "someone who was used is not charged"
            );
        }
        assert!(charged.len() >= 8 * self.cohort * self.rounds);
        let lines = lines(folder);
        let rows = lines.lines().map(|line| {
            let numbers: Vec<f64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
            <[f64; 4]>::try_from(numbers).unwrap()
        });
        let [ledger, noise, all, peak] = rows.fold([0.0; 4], |sum, row| {
            [sum[0] + row[0], sum[1] + row[1], sum[2] + row[2], f64::max(sum[3], row[3])]
        });
        let noisy_sums = number(
            "SELECT COUNT(*) FROM noisy_sums WHERE step BETWEEN 0 AND (SELECT MAX(step) FROM noisy_sums)",
        )?;
        Ok(Account {
            seconds: all * 1e-9,
            ledger_share: ledger / all,
            noise_share: noise / all,
            peak_mib: peak / 1024.0,
            users: number("SELECT COUNT(DISTINCT user) FROM participations")?,
            participations: number("SELECT COUNT(*) FROM participations")?,
            least_gap: number(
                "SELECT COALESCE(MIN(gap), 1 << 40) FROM (SELECT step - LAG(step) OVER (PARTITION BY user ORDER BY step) AS gap \
                 FROM participations) WHERE gap IS NOT NULL",
            )?,
            most: number("SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM participations GROUP BY user)")?,
            smallest_round: number(
                "SELECT MIN(n) FROM (SELECT COUNT(*) AS n FROM participations GROUP BY step)",
            )?,
            noisy_sums,
            bytes: std::fs::metadata(path)?.len(),
        })
    }
}
