//! `miserly pools`: the free capacity from now on, as bars.

use std::process::ExitCode;

use miserly_api::model::{Pool, Slice};
use miserly_report::decimals;
use miserly_units::memory;

use super::text::{counted, local, plain, table};
use super::{client, print_answer};
use crate::args::AskArgs;

/// The characters of the longest bar.
const LONGEST: u64 = 40;

pub(crate) fn run(args: &AskArgs) -> anyhow::Result<ExitCode> {
    let pools = client(&args.daemon)?.pools()?;
    print_answer(args.json, &pools, || pools.pools.iter().map(draw).collect::<Vec<_>>().join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a line for each change of the capacity. The last one holds as far as is known.
fn draw(pool: &Pool) -> String {
    let head = format!("{}: {}; # in a window, . free\n", pool.queue, counted(pool.cpus, "cpu"));
    let width = pool.cpus.to_string().len();
    // A pool without GPUs has none free at any time.
    let has_gpus = pool.slices.iter().any(|slice| slice.gpus_free > 0);
    let line = |slice: &Slice| {
        format!(
            "  {}  {}  {:width$} of {:width$} free, {}{}\n",
            local(slice.from),
            bar(slice, pool.cpus),
            slice.cpus_free,
            slice.cpus,
            memory(slice.memory_free),
            if has_gpus { format!(", {}", counted(slice.gpus_free, "GPU")) } else { String::new() }
        )
    };
    let users = pool.usage.iter().map(|user| (&user.user, user.share, user.cpu_hours));
    let groups = pool.group_usage.iter().map(|group| (&group.group, group.share, group.cpu_hours));
    let usage = usage("USER", users.collect()) + &usage("GROUP", groups.collect());
    pool.slices.iter().map(line).fold(head, |text, line| text + &line) + &usage
}

/// Returns a table of the decayed usage, if the order of the queue depends on it.
fn usage(of: &str, shares: Vec<(&String, f64, f64)>) -> String {
    if shares.is_empty() {
        return String::new();
    }
    let row =
        |(name, share, hours): (&String, f64, f64)| vec![plain(name), decimals(share, 3), decimals(hours, 2)];
    let header = [of, "USAGE SHARE", "CPU HOURS"];
    let table = table(&header, &header[1..], shares.into_iter().map(row));
    table.lines().fold(String::new(), |text, line| text + "  " + line + "\n")
}

/// Returns a bar: used processors, free ones, and blanks for processors that the pool does not have
/// then. A processor is one character if the width suffices.
fn bar(slice: &Slice, most: u64) -> String {
    let scale = most.clamp(1, LONGEST);
    let letters = |cpus: u64| {
        // Rounded up, so that any amount above 0 is visible.
        let letters = (u128::from(cpus) * u128::from(scale)).div_ceil(u128::from(most.max(1)));
        usize::try_from(letters.min(u128::from(LONGEST))).unwrap_or_default()
    };
    let all = letters(slice.cpus);
    let taken = letters(slice.cpus.saturating_sub(slice.cpus_free)).min(all);
    let width = letters(most);
    format!("{:width$}", "#".repeat(taken) + &".".repeat(all - taken))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn bars() {
        let slice = |cpus, cpus_free| Slice {
            from: Timestamp::UNIX_EPOCH,
            cpus,
            cpus_free,
            memory_free: 0,
            gpus_free: 0,
        };
        assert_eq!(bar(&slice(8, 3), 8), "#####...");
        assert_eq!(bar(&slice(4, 0), 8), "####    ");
        assert_eq!(bar(&slice(0, 0), 0), "");
        assert_eq!(bar(&slice(400, 399), 400), format!("#{}", ".".repeat(39)));
        assert_eq!(bar(&slice(400, 0), 400), "#".repeat(40));
        // Impossible values have a bar, too.
        assert_eq!(bar(&slice(4, 9), 4), "....");
        assert_eq!(bar(&slice(u64::MAX, 0), 4).len(), 40);
    }
}
