//! How much memory the jobs ask for, and how much they use.

use miserly_core::lsf::Size;

use super::super::log::Memory;
use super::super::random::Stream;
use super::deal::Deal;
use super::draft::Draft;
use super::solve::exponent;
use super::stream::{Purpose, Streams};

/// The share of each class that uses less than a tenth of the memory it asks for. From the paper's 25 to 35 % (§3).
pub(super) const LIGHT: f64 = 0.3;

/// The same among the jobs under a minute. Decided here.
const SHORT_LIGHT: f64 = 0.6;

/// The share of the serial sj jobs that ask for over 512 MB: with those of the larger classes, which all do, half of
/// the serial jobs (§3).
const SERIAL_ABOVE: f64 = 0.43;

/// Of the jobs under a minute that ask for more, the share that uses more than 1 GB. From "nearly all" (§3).
const SHORT_ABOVE: f64 = 0.02;

/// Memory is asked for in whole megabytes per processor, kB. Decided here.
const MEGABYTE: u64 = 1 << 10;

/// The least that is asked for per processor, MB. Decided here.
const LEAST: u64 = 8;

/// The memory of a processor on the better hosts, MB (Table 2).
const PROCESSOR: u64 = 512;

/// The least share of its memory that a job uses. Decided here.
const LEAST_USED: f64 = 0.005;

/// The longest runtime that any class admits, seconds.
const LONGEST: f64 = 400.0 * 3_600.0;

/// How the memory that a job asks for depends on the exponent of its class: `least * ratio ^ (place ^ exponent)`.
struct Ask {
    /// Per processor, MB.
    least: u64,
    most: u64,
    ln_ratio: f64,
    ln_place: f64,
}

impl Ask {
    fn new((least, most): (u64, u64), place: f64) -> Ask {
        let ln_ratio = (most as f64 / least as f64).ln();
        // A place of 0 has no logarithm.
        Ask { least, most, ln_ratio, ln_place: place.max(f64::EPSILON).ln() }
    }

    /// MB per processor, not yet whole.
    fn megabytes(&self, exponent: f64) -> f64 {
        self.least as f64 * (self.ln_ratio * (exponent * self.ln_place).exp()).exp()
    }
}

/// The least and the most that a job of this size class may ask for, whole MB per processor.
fn range(size: Size, procs: u32) -> (u64, u64) {
    let per_processor = |limit: Size| limit.memory() / MEGABYTE / u64::from(procs);
    let smaller = match size {
        Size::Small => None,
        Size::Medium => Some(Size::Small),
        Size::Large => Some(Size::Medium),
    };
    // One that is narrow enough for the smaller class asks for more memory than that admits.
    let least = match smaller {
        Some(smaller) if u64::from(procs) <= smaller.procs().get() => per_processor(smaller) + 1,
        _ => LEAST,
    };
    (least, per_processor(size))
}

/// The memory that jobs ask for, kB per processor, and the exponent, so that they demand so many kB-seconds.
pub(super) fn requests(
    size: Size,
    drafts: &[Draft],
    runtimes: &[u64],
    target: f64,
    streams: &Streams,
) -> (Vec<u64>, f64) {
    let asks = asks(size, drafts, streams);
    let weights: Vec<f64> = drafts
        .iter()
        .zip(runtimes)
        .map(|(draft, &runtime)| (u64::from(draft.procs) * runtime) as f64)
        .collect();
    let demand = |exponent: f64| -> f64 {
        let one = |(ask, weight): (&Ask, &f64)| ask.megabytes(exponent) * weight;
        asks.iter().zip(&weights).map(one).sum::<f64>() * MEGABYTE as f64
    };
    let exponent = exponent(target, demand);
    let request = |ask: &Ask| whole(ask.megabytes(exponent).round()).clamp(ask.least, ask.most) * MEGABYTE;
    (asks.iter().map(request).collect(), exponent)
}

fn asks(size: Size, drafts: &[Draft], streams: &Streams) -> Vec<Ask> {
    let mut stream = streams.of(Purpose::RequestedMemory);
    let mut above = Deal::new(SERIAL_ABOVE, stream.uniform());
    let ask = |draft: &Draft| {
        let (least, most) = range(size, draft.procs);
        let range = match draft.procs {
            1 if size == Size::Small && above.next() => (PROCESSOR + 1, most),
            1 if size == Size::Small => (least, PROCESSOR),
            _ => (least, most),
        };
        Ask::new(range, stream.uniform())
    };
    drafts.iter().map(ask).collect()
}

/// The memory of the jobs, kB per processor, from what they ask for.
pub(super) fn used(drafts: &[Draft], runtimes: &[u64], requests: &[u64], streams: &Streams) -> Vec<Memory> {
    let mut stream = streams.of(Purpose::UsedMemory);
    let bounds: Vec<_> =
        drafts.iter().zip(requests).map(|(draft, &request)| bound(draft, request, &mut stream)).collect();
    let light = lights(drafts, &bounds, &mut stream);
    let memory = |at: usize| {
        let range = if light[at] { (LEAST_USED, 0.1_f64.min(bounds[at])) } else { (0.1, bounds[at]) };
        let used = requests[at] as f64 * share(range, runtimes[at], stream.uniform());
        // Rounding must not make a tenth less of it, nor less than a tenth a tenth.
        let used = if light[at] { used.floor() } else { used.ceil() };
        Memory { requested: requests[at], used: whole(used).clamp(1, requests[at]) }
    };
    (0..drafts.len()).map(memory).collect()
}

/// The most that a job uses, as a share of what it asks for.
fn bound(draft: &Draft, request: u64, stream: &mut Stream) -> f64 {
    const GIGABYTE: u64 = 1 << 20;
    let free = stream.uniform() < SHORT_ABOVE;
    let total = request * u64::from(draft.procs);
    if !draft.pace.is_short() || free || total < GIGABYTE {
        1.0
    } else {
        (GIGABYTE - 1) as f64 / total as f64
    }
}

/// Who uses less than a tenth. A job whose bound is hardly more has to; then the others do so less often, so
/// that the share of all is kept.
fn lights(drafts: &[Draft], bounds: &[f64], stream: &mut Stream) -> Vec<bool> {
    let mut of_short = Deal::new(SHORT_LIGHT, stream.uniform());
    let mut light: Vec<bool> = drafts
        .iter()
        .zip(bounds)
        .map(|(draft, &bound)| draft.pace.is_short() && (bound < 0.12 || of_short.next()))
        .collect();
    let count = |light: &[bool]| light.iter().filter(|&&light| light).count() as f64;
    let others = drafts.iter().filter(|draft| !draft.pace.is_short()).count() as f64;
    let missing = (LIGHT * drafts.len() as f64 - count(&light)).max(0.0);
    let mut of_others = Deal::new((missing / others.max(1.0)).min(1.0), stream.uniform());
    for (light, draft) in light.iter_mut().zip(drafts) {
        *light |= !draft.pace.is_short() && of_others.next();
    }
    light
}

/// A share in a range, by its logarithm: the longer the runtime, the nearer the upper end (§3).
fn share((least, most): (f64, f64), runtime: u64, place: f64) -> f64 {
    let length = (runtime.max(1) as f64).ln() / LONGEST.ln();
    let place = place.powf(2.5 - 2.0 * length);
    least * (most / least).powf(place)
}

/// Rounded down.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "up to 16 GB in kB")]
fn whole(amount: f64) -> u64 {
    amount as u64
}

#[cfg(test)]
mod tests {
    use miserly_core::Span;
    use miserly_core::lsf::Class;

    use super::*;

    #[test]
    fn the_ends_of_the_range_are_of_the_class() {
        let of = |procs: u32, megabytes: u64| {
            let procs = u64::from(procs);
            Class::of(procs.into(), megabytes * MEGABYTE * procs, Span::ZERO).map(|class| class.size)
        };
        for size in Size::ALL {
            for procs in 1..=u32::try_from(size.procs()).unwrap() {
                let (least, most) = range(size, procs);
                assert!(least < most, "{size:?} {procs}");
                assert_eq!([of(procs, least), of(procs, most)], [Some(size); 2], "{procs}");
            }
        }
    }
}
