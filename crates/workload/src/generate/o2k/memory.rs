//! Requested and used memory of the jobs.

use miserly_classes::lsf::Size;

use super::super::log::JobMemory;
use super::super::random::Stream;
use super::draft::Draft;
use super::share_selector::ShareSelector;
use super::solve::exponent;
use super::stream::{Purpose, Streams};

/// Share of each class that uses less than a tenth of its requested memory. From the paper's 25 to
/// 35 % (§3).
pub(super) const LIGHT: f64 = 0.3;

/// The same share among the jobs under a minute. Decided here.
const SHORT_LIGHT: f64 = 0.6;

/// Share of the serial sj jobs that request over 512 MB.
///
/// Together with the larger classes, all of whose serial jobs do, that is half of the serial jobs
/// (§3).
const SERIAL_ABOVE: f64 = 0.43;

/// Share with more than 1 GB used, among jobs under a minute that request more. From "nearly all"
/// (§3).
const SHORT_ABOVE: f64 = 0.02;

/// Unit of requested memory per processor: a megabyte in kB. Decided here.
const MEGABYTE: u64 = 1 << 10;

/// Least requested memory per processor in MB. Decided here.
const LEAST: u64 = 8;

/// Memory per processor on the better hosts in MB (Table 2).
const PROCESSOR: u64 = 512;

/// Least used share of the requested memory. Decided here.
const LEAST_USED: f64 = 0.005;

/// Longest runtime of any class in seconds.
const LONGEST: f64 = 400.0 * 3_600.0;

/// Requested memory as a function of the exponent of the class: `least * ratio ^ (place ^
/// exponent)`.
struct MemoryRequest {
    /// MB per processor.
    least: u64,
    most: u64,
    ln_ratio: f64,
    ln_place: f64,
}

impl MemoryRequest {
    fn new((least, most): (u64, u64), place: f64) -> MemoryRequest {
        let ln_ratio = (most as f64 / least as f64).ln();
        // A place of 0 has no logarithm.
        MemoryRequest { least, most, ln_ratio, ln_place: place.max(f64::EPSILON).ln() }
    }

    /// Returns MB per processor, unrounded.
    fn megabytes(&self, exponent: f64) -> f64 {
        self.least as f64 * (self.ln_ratio * (exponent * self.ln_place).exp()).exp()
    }
}

/// Returns the bounds of the requested memory in a size class, in whole MB per processor.
fn range(size: Size, procs: u32) -> (u64, u64) {
    let per_processor = |limit: Size| limit.memory() / MEGABYTE / u64::from(procs);
    let smaller = match size {
        Size::Small => None,
        Size::Medium => Some(Size::Small),
        Size::Large => Some(Size::Medium),
    };
    // A job narrow enough for the smaller class requests more memory than that class admits.
    let least = match smaller {
        Some(smaller) if u64::from(procs) <= smaller.procs().get() => per_processor(smaller) + 1,
        _ => LEAST,
    };
    (least, per_processor(size))
}

/// Returns the requested memory in kB per processor that meets the kB-seconds, and the exponent.
pub(super) fn requests(
    size: Size,
    drafts: &[Draft],
    runtimes: &[u64],
    target: f64,
    streams: &Streams,
) -> (Vec<u64>, f64) {
    let requests_of = requests_of(size, drafts, streams);
    let weights: Vec<f64> = drafts
        .iter()
        .zip(runtimes)
        .map(|(draft, &runtime)| (u64::from(draft.procs) * runtime) as f64)
        .collect();
    let demand = |exponent: f64| -> f64 {
        let one = |(ask, weight): (&MemoryRequest, &f64)| ask.megabytes(exponent) * weight;
        requests_of.iter().zip(&weights).map(one).sum::<f64>() * MEGABYTE as f64
    };
    let exponent = exponent(target, demand);
    let request =
        |ask: &MemoryRequest| whole(ask.megabytes(exponent).round()).clamp(ask.least, ask.most) * MEGABYTE;
    (requests_of.iter().map(request).collect(), exponent)
}

fn requests_of(size: Size, drafts: &[Draft], streams: &Streams) -> Vec<MemoryRequest> {
    let mut stream = streams.stream(Purpose::RequestedMemory);
    let mut above = ShareSelector::new(SERIAL_ABOVE, stream.uniform());
    let ask = |draft: &Draft| {
        let (least, most) = range(size, draft.procs);
        let range = match draft.procs {
            1 if size == Size::Small && above.next() => (PROCESSOR + 1, most),
            1 if size == Size::Small => (least, PROCESSOR),
            _ => (least, most),
        };
        MemoryRequest::new(range, stream.uniform())
    };
    drafts.iter().map(ask).collect()
}

/// Returns the memory of the jobs in kB per processor, given the requested memory.
pub(super) fn used(
    drafts: &[Draft],
    runtimes: &[u64],
    requests: &[u64],
    streams: &Streams,
) -> Vec<JobMemory> {
    let mut stream = streams.stream(Purpose::UsedMemory);
    let bounds: Vec<_> =
        drafts.iter().zip(requests).map(|(draft, &request)| bound(draft, request, &mut stream)).collect();
    let light = lights(drafts, &bounds, &mut stream);
    let memory = |at: usize| {
        let range = if light[at] { (LEAST_USED, 0.1_f64.min(bounds[at])) } else { (0.1, bounds[at]) };
        let used = requests[at] as f64 * share(range, runtimes[at], stream.uniform());
        // Rounding must not move a value across a tenth of the request.
        let used = if light[at] { used.floor() } else { used.ceil() };
        JobMemory { requested: requests[at], used: whole(used).clamp(1, requests[at]) }
    };
    (0..drafts.len()).map(memory).collect()
}

/// Returns the maximum share of the requested memory that a job uses.
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

/// Selects the jobs that use less than a tenth.
///
/// A job with a bound close to a tenth is always selected. The other jobs are then selected less
/// often, so that the total share holds.
fn lights(drafts: &[Draft], bounds: &[f64], stream: &mut Stream) -> Vec<bool> {
    let mut of_short = ShareSelector::new(SHORT_LIGHT, stream.uniform());
    let mut light: Vec<bool> = drafts
        .iter()
        .zip(bounds)
        .map(|(draft, &bound)| draft.pace.is_short() && (bound < 0.12 || of_short.next()))
        .collect();
    let count = |light: &[bool]| light.iter().filter(|&&light| light).count() as f64;
    let others = drafts.iter().filter(|draft| !draft.pace.is_short()).count() as f64;
    let missing = (LIGHT * drafts.len() as f64 - count(&light)).max(0.0);
    let mut of_others = ShareSelector::new((missing / others.max(1.0)).min(1.0), stream.uniform());
    for (light, draft) in light.iter_mut().zip(drafts) {
        *light |= !draft.pace.is_short() && of_others.next();
    }
    light
}

/// Returns a share in a logarithmic range. Longer runtimes are nearer to the upper end (§3).
fn share((least, most): (f64, f64), runtime: u64, place: f64) -> f64 {
    let length = (runtime.max(1) as f64).ln() / LONGEST.ln();
    let place = place.powf(2.5 - 2.0 * length);
    least * (most / least).powf(place)
}

/// Rounds down.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "up to 16 GB in kB")]
fn whole(amount: f64) -> u64 {
    amount as u64
}

#[cfg(test)]
mod tests {
    use miserly_classes::lsf::Class;
    use miserly_core::Span;

    use super::*;

    #[test]
    fn the_ends_of_the_range_are_of_the_class() {
        let of = |procs: u32, megabytes: u64| {
            let procs = u64::from(procs);
            Class::for_request(procs.into(), megabytes * MEGABYTE * procs, Span::ZERO).map(|class| class.size)
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
