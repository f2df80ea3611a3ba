//! `miserly reservation`: parts of a pool for some users, at some times.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};
use miserly_api::model::{Reservation, ReservedTime};
use miserly_units::memory;

use super::text::{counted, local, plain, table};
use super::{client, print_answer};
use crate::args::{AddArgs, AskArgs, RemoveArgs, ReservationArgs, ReservationCommand};

pub(crate) fn run(args: &ReservationArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        ReservationCommand::Add(args) => add(args)?,
        ReservationCommand::List(args) => list(args)?,
        ReservationCommand::Remove(args) => remove(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn add(args: &AddArgs) -> anyhow::Result<()> {
    let wanted = Reservation {
        name: args.name.clone(),
        queue: args.queue.clone(),
        give_to: args.give_to.clone(),
        cpus: args.cpus,
        memory: args.memory,
        gpus: args.gpus,
        users: args.users.clone(),
        groups: args.groups.clone(),
        policy: args.policy.clone(),
        times: times(args, &TimeZone::system())?,
        ..Reservation::default()
    };
    let made = client(&args.ask.daemon)?.reserve(&wanted)?;
    print_answer(args.ask.json, &made, || made.iter().map(made_text).collect())
}

fn list(args: &AskArgs) -> anyhow::Result<()> {
    let client = client(&args.daemon)?;
    let all = client.reservations()?;
    print_answer(args.json, &all, || {
        if all.is_empty() {
            return "there are no reservations\n".to_owned();
        }
        let header =
            ["NAME", "QUEUE", "CPUS", "MEMORY", "GPUS", "FOR", "NEXT", "UNTIL", "TIMES LEFT", "JOBS"];
        table(
            &header,
            &["CPUS", "GPUS", "TIMES LEFT", "JOBS"],
            all.iter().map(|one| row(one, Timestamp::now())),
        )
    })
}

fn remove(args: &RemoveArgs) -> anyhow::Result<()> {
    let client = client(&args.ask.daemon)?;
    let mut removed = vec![];
    for name in &args.names {
        removed.extend(client.remove_reservation(name)?);
    }
    print_answer(args.ask.json, &removed, || {
        let lines = removed.iter().map(|one| format!("reservation {} is removed\n", plain(&one.name)));
        lines.collect::<Vec<_>>().concat()
    })
}

/// Returns the times: on each day of each week, at the time of the clock at which the first one begins.
fn times(args: &AddArgs, zone: &TimeZone) -> anyhow::Result<Vec<ReservedTime>> {
    let first = args.from.to_zoned(zone.clone());
    let length = match (args.length, args.to) {
        (Some(secs), _) => SignedDuration::from_secs(i64::try_from(secs).unwrap_or(i64::MAX)),
        (None, to) => to.unwrap_or(args.from).duration_since(args.from),
    };
    ensure!(length.is_positive(), "--to: the end is not after the beginning, {}", local(args.from));
    let mut days: Vec<i64> = args.days.iter().map(|day| i64::from(first.weekday().until(*day))).collect();
    if days.is_empty() {
        days.push(0);
    }
    days.sort_unstable();
    days.dedup();
    let all = (0..i64::from(args.weeks)).flat_map(|week| days.iter().map(move |day| 7 * week + day));
    all.map(|days| time(&first, days, length)).collect()
}

fn time(first: &Zoned, days: i64, length: SignedDuration) -> anyhow::Result<ReservedTime> {
    let beyond = "--weeks: the calendar ends before";
    let from = first.checked_add(days.days()).context(beyond)?;
    let to = from.timestamp().checked_add(length).context(beyond)?;
    Ok(ReservedTime { from: from.timestamp(), to })
}

fn made_text(one: &Reservation) -> String {
    let (first, last) = (one.times.first(), one.times.last());
    let times = match (one.times.len(), first, last) {
        (1, Some(only), _) => format!("from {} to {}", local(only.from), local(only.to)),
        (count, Some(first), Some(last)) => {
            format!(
                "{count} times, the first from {} to {}, the last from {}",
                local(first.from),
                local(first.to),
                local(last.from)
            )
        }
        _ => String::new(),
    };
    let how = match &one.give_to {
        Some(_) => String::new(),
        None => format!("its users submit with --reservation {}\n", plain(&one.name)),
    };
    format!(
        "reservation {}: {} of queue {} for {}, {times}\n{how}",
        plain(&one.name),
        resources(one),
        plain(one.queue.as_deref().unwrap_or_default()),
        users(one),
    )
}

fn resources(one: &Reservation) -> String {
    let mut parts = vec![counted(one.cpus, "cpu")];
    parts.extend(one.memory.map(memory));
    parts.extend((one.gpus > 0).then(|| counted(one.gpus, "GPU")));
    parts.join(", ")
}

fn users(one: &Reservation) -> String {
    let users = one.users.iter().map(|user| plain(user));
    let groups = one.groups.iter().map(|group| format!("@{}", plain(group)));
    let queue = one.give_to.iter().map(|queue| format!("queue {}", plain(queue)));
    users.chain(groups).chain(queue).collect::<Vec<_>>().join(",")
}

fn row(one: &Reservation, now: Timestamp) -> Vec<String> {
    let left = || one.times.iter().filter(|time| time.to > now);
    let next = left().next();
    let instant = |at: Option<Timestamp>| at.map_or_else(|| "over".to_owned(), local);
    vec![
        plain(&one.name),
        plain(one.queue.as_deref().unwrap_or_default()),
        one.cpus.to_string(),
        one.memory.map_or_else(|| "-".to_owned(), memory),
        one.gpus.to_string(),
        users(one),
        instant(next.map(|time| time.from)),
        instant(next.map(|time| time.to)),
        left().count().to_string(),
        one.jobs.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command, DaemonCommand};

    #[track_caller]
    fn times_of(line: &str) -> Vec<String> {
        let cli =
            Cli::parse_from(format!("miserly reservation add course -c 2 --users ada {line}").split(' '));
        let Command::OfDaemon(DaemonCommand::Reservation(args)) = cli.command else {
            panic!("another command")
        };
        let ReservationCommand::Add(args) = args.command else { panic!("another command") };
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let shown = |at: Timestamp| at.to_zoned(zone.clone()).strftime("%a %d %H:%M").to_string();
        let times = times(&args, &zone).unwrap();
        times.iter().map(|time| format!("{} - {}", shown(time.from), shown(time.to))).collect()
    }

    #[test]
    fn weekly_times_keep_the_time_of_the_clock() {
        // The clocks are set back on Sunday 25.
        assert_eq!(
            times_of("--from 2026-10-20T07:00Z --for 3h --weeks 2 --days wed,mon"),
            [
                "Wed 21 09:00 - Wed 21 12:00",
                "Mon 26 09:00 - Mon 26 12:00",
                "Wed 28 09:00 - Wed 28 12:00",
                "Mon 02 09:00 - Mon 02 12:00"
            ]
        );
        assert_eq!(
            times_of("--from 2026-10-20T07:00Z --to 2026-10-21T07:30Z"),
            ["Tue 20 09:00 - Wed 21 09:30"]
        );
    }
}
