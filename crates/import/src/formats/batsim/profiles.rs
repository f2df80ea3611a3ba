//! Durations of profiles.

use std::collections::BTreeMap;

use super::json::JsonProfile;

/// Maximum depth of nested sequences. A deeper one is taken to contain itself.
const DEPTH: u32 = 16;

/// The duration of a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ProfileDuration {
    /// A fixed duration, and whether the profile returns an error.
    Seconds { seconds: f64, fails: bool },
    /// A duration that depends on the platform.
    PlatformDependent,
}

/// Returns the duration of a profile, or `None` if the profile is missing or contains itself.
///
/// Delays and sequences of delays have a fixed duration. Their types are `delay` and `composed` up
/// to Batsim 4. Later they are `DelayProfile` and `SequentialCompositionProfile`.
pub(super) fn duration(profiles: &BTreeMap<String, JsonProfile>, name: &str) -> Option<ProfileDuration> {
    let mut steps = 1 << 16;
    within(profiles, name, DEPTH, &mut steps)
}

/// Returns the same, limited to `depth` levels and `steps` profiles in all.
fn within(
    profiles: &BTreeMap<String, JsonProfile>,
    name: &str,
    depth: u32,
    steps: &mut u32,
) -> Option<ProfileDuration> {
    let depth = depth.checked_sub(1)?;
    *steps = steps.checked_sub(1)?;
    let profile = profiles.get(name)?;
    let fails = profile.ret != 0;
    match (profile.kind.as_str(), profile.delay, &profile.seq) {
        ("delay" | "DelayProfile", Some(seconds), _) => Some(ProfileDuration::Seconds { seconds, fails }),
        ("composed" | "SequentialCompositionProfile", _, Some(seq)) => {
            let mut sum = 0.0;
            for part in seq {
                match within(profiles, &part.to_string(), depth, steps)? {
                    ProfileDuration::Seconds { seconds, .. } => sum += seconds,
                    ProfileDuration::PlatformDependent => return Some(ProfileDuration::PlatformDependent),
                }
            }
            Some(ProfileDuration::Seconds { seconds: sum * f64::from(profile.repeat.unwrap_or(1)), fails })
        }
        _ => Some(ProfileDuration::PlatformDependent),
    }
}
