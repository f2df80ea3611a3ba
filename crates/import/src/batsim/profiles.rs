//! How long a profile lasts.

use std::collections::BTreeMap;

use super::json::Profile;

/// How deep sequences may be within sequences. Beyond it, one is taken to contain itself.
const DEPTH: u32 = 16;

/// How long a profile lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Duration {
    /// As long everywhere, and whether it returns an error.
    Seconds { seconds: f64, fails: bool },
    /// As long as a platform makes it.
    OfThePlatform,
}

/// The duration of the profile of that name; `None` if there is none, or it contains itself.
///
/// Delays and sequences of them have one. They are called `delay` and `composed` up to Batsim 4, then `DelayProfile` and
/// `SequentialCompositionProfile`.
pub(super) fn duration(profiles: &BTreeMap<String, Profile>, name: &str) -> Option<Duration> {
    let mut steps = 1 << 16;
    within(profiles, name, DEPTH, &mut steps)
}

/// As [`duration`], no deeper than `depth`, and no more than `steps` profiles in all.
fn within(profiles: &BTreeMap<String, Profile>, name: &str, depth: u32, steps: &mut u32) -> Option<Duration> {
    let depth = depth.checked_sub(1)?;
    *steps = steps.checked_sub(1)?;
    let profile = profiles.get(name)?;
    let fails = profile.ret != 0;
    match (profile.kind.as_str(), profile.delay, &profile.seq) {
        ("delay" | "DelayProfile", Some(seconds), _) => Some(Duration::Seconds { seconds, fails }),
        ("composed" | "SequentialCompositionProfile", _, Some(seq)) => {
            let mut sum = 0.0;
            for part in seq {
                match within(profiles, &part.to_string(), depth, steps)? {
                    Duration::Seconds { seconds, .. } => sum += seconds,
                    Duration::OfThePlatform => return Some(Duration::OfThePlatform),
                }
            }
            Some(Duration::Seconds { seconds: sum * f64::from(profile.repeat.unwrap_or(1)), fails })
        }
        _ => Some(Duration::OfThePlatform),
    }
}
