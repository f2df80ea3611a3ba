//! Limits of users, and reservations.

use std::collections::BTreeMap;
use std::rc::Rc;

use miserly_api::model::{JobView, Status};
use miserly_engine::{DaemonReply, DaemonRequest, Record, Snapshot};

use crate::asked::caller;
use crate::step::SECOND;
use crate::world::{Checked, USERS, World};

/// The jobs of a user in ledgers, and their processors.
pub(crate) type Places = BTreeMap<u32, [u64; 2]>;

impl World {
    /// Returns the places that the stored state has. A lower limit takes none away.
    pub(crate) fn places_now(&self) -> Places {
        let mut places = Places::new();
        for row in self.journal.rows().values().filter(|row| !row.ended && row.uid != 0) {
            let Ok(record) = serde_json::from_str::<Record>(&row.body) else { continue };
            if record.is_in_ledger() {
                let [jobs, cpus] = places.entry(row.uid).or_default();
                (*jobs, *cpus) = (*jobs + 1, *cpus + record.submission.cpus);
            }
        }
        places
    }

    /// No user has more jobs or processors in ledgers than the limits permit. After a lower limit jobs keep their places.
    pub(crate) fn check_limits(&mut self, snapshot: &Snapshot) -> Checked {
        let places = self.places_now();
        let before = std::mem::replace(&mut self.places, places);
        for (user, places) in &self.places {
            let had = before.get(user).copied().unwrap_or_default();
            let answer = snapshot.answer(
                self.moment(),
                &caller(*user),
                &DaemonRequest::Limits,
                &self.journal,
                &|_, _| Ok(()),
            );
            let Ok(DaemonReply::Limits(report)) = answer else { return Err("the limits are refused".into()) };
            for (nth, field) in ["running", "cpus"].into_iter().enumerate() {
                let mut limits = report.limits.iter();
                let Some(limit) = limits.find(|limit| limit.limit == format!("user-limits.{field}")) else {
                    continue;
                };
                #[allow(clippy::cast_precision_loss, reason = "small numbers")]
                let (has, had) = (places[nth] as f64, had[nth] as f64);
                if has > limit.most.max(had) {
                    return Err(format!(
                        "user {user} has {has} in ledgers, and {} is {}",
                        limit.limit, limit.most
                    ));
                }
            }
        }
        Ok(())
    }

    /// The processors of a reservation are used by no other job in its time, and only its users have jobs there.
    pub(crate) fn check_reservations(
        &self,
        snapshot: &Snapshot,
        jobs: &[Rc<JobView>],
        status: &Status,
    ) -> Checked {
        let of_reservation = |job: &&Rc<JobView>| job.queue.starts_with('r');
        if let Some(job) = jobs.iter().filter(of_reservation).find(|job| job.uid != 0 && job.uid != USERS) {
            return Err(format!("job {} is in reservation {} of another user", job.number, job.queue));
        }
        let answer =
            |question| snapshot.answer(self.moment(), &caller(0), &question, &self.journal, &|_, _| Ok(()));
        let Ok(DaemonReply::Reservations(reservations)) = answer(DaemonRequest::Reservations) else {
            return Err("the reservations are refused".into());
        };
        let is_now = |from, to| self.ticks(from) < self.now && self.now < self.ticks(to);
        let times = reservations.iter().flat_map(|one| &one.times).filter(|time| is_now(time.from, time.to));
        let pool = status.queues.iter().find(|queue| queue.name == "q0").map(|queue| queue.cpus);
        let (Some(pool), Some(from)) = (pool, times.map(|time| time.from).max()) else { return Ok(()) };
        // A start that was recorded before an absence of the daemon may come late, into the time of the reservation.
        let since = self.ticks(from).max(self.began) + SECOND;
        let of_pool = |number| jobs.iter().any(|job| job.number == number && job.queue == "q0");
        let windows = self.machine.windows();
        let began_in_it = |attempt| self.machine.begun_at(attempt).is_some_and(|begun| begun > since);
        // Jobs that take turns share processors.
        let alone = windows.iter().filter(|window| !window.takes_turns && of_pool(window.attempt.job));
        let used: usize =
            alone.filter(|window| began_in_it(window.attempt)).map(|window| window.cpus.len()).sum();
        if used as u64 > pool && self.watch.has_lost_none() {
            return Err(format!(
                "{pool} processors are not reserved, and jobs without a reservation use {used}"
            ));
        }
        Ok(())
    }
}
