//! Reservations: queues of operators with a part of the pool of another queue, at some times.

use std::sync::Arc;

use std::collections::BTreeSet;

use miserly_api::model::{self, Problem, ProblemCode, ReservedTime};
use miserly_core::{Calendar, Exception, Kind, Resources, Time};
use miserly_policies::PolicySpec;
use miserly_saved::ticks;
use serde::{Deserialize, Serialize};

use crate::request::problems::refused_field;
use crate::{
    AccountName, Amounts, MemoryAmount, Now, Queue, QueueTerms, QueueUsers, Setup, amounts, resources,
};

/// The most characters of a name.
const NAME: usize = 64;

/// The policy of a reservation for which none is named: every job gets a promise.
const POLICY: &str = "conservative";

/// A reservation, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Reservation {
    /// The name of its queue.
    pub(crate) name: String,
    /// The queue from whose pool the resources come.
    pub(crate) of: String,
    /// The queue whose pool has them meanwhile; `None` for a queue of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) give_to: Option<String>,
    /// The resources.
    pub(crate) amount: Amounts,
    /// The times.
    pub(crate) times: Vec<Period>,
    /// The users.
    pub(crate) users: QueueUsers,
    /// The policy, in its written form.
    pub(crate) policy: String,
    /// The operator who made it, by number.
    pub(crate) by: u32,
}

/// A time of a reservation, from its beginning until before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Period(#[serde(with = "ticks")] Time, #[serde(with = "ticks")] Time);

impl Reservation {
    /// Returns the reservation for a request of an operator.
    ///
    /// # Errors
    /// The first field that is invalid, or that the setup does not permit.
    pub(crate) fn new(
        setup: &Setup,
        now: Now,
        by: u32,
        written: &model::Reservation,
    ) -> Result<Reservation, Problem> {
        check_name(setup, &written.name)?;
        let of = written.queue.as_deref().or_else(|| Some(setup.queues.first()?.name.as_str()));
        let of = of.and_then(|name| setup.queue(name)).filter(|queue| !setup.is_reservation(&queue.name));
        let of =
            of.ok_or_else(|| Problem::with_field("queue", "queue: name a queue of the configuration"))?;
        if !of.policy.needs().calendar {
            let message = format!(
                "the policy of queue {}, {}, plans with a constant pool; `miserly policies` shows the others",
                of.name, of.policy
            );
            return Err(refused_field("queue", message));
        }
        let give_to = written.give_to.as_ref();
        let users = match give_to {
            Some(to) => {
                check_given(setup, of, to, written)?;
                QueueUsers::default()
            }
            None => users(written)?,
        };
        Ok(Reservation {
            name: written.name.clone(),
            of: of.name.clone(),
            give_to: give_to.cloned(),
            amount: amounts(&amount(of, setup.granule(), written)?),
            times: times(now, &written.times)?,
            users,
            policy: policy(written.policy.as_deref().unwrap_or(POLICY))?,
            by,
        })
    }

    /// Returns the resources.
    pub(crate) fn resources(&self) -> Resources {
        resources(self.amount)
    }

    /// Returns the times.
    pub(crate) fn times(&self) -> impl Iterator<Item = (Time, Time)> + '_ {
        self.times.iter().map(|time| (time.0, time.1))
    }

    /// Returns the end of its last time.
    pub(crate) fn last(&self) -> Time {
        self.times().last().map_or(Time::ZERO, |(_, to)| to)
    }

    /// Returns its queue, over a pool that is empty at all other times.
    ///
    /// Returns `None` if its times or its policy are invalid.
    fn queue(&self, of: &Queue) -> Option<Queue> {
        let amount = self.resources();
        let times = self.times().map(|(from, to)| Exception { from, to, amount }).collect();
        Some(Queue {
            name: self.name.clone(),
            policy: self.policy.parse().ok()?,
            pool: Calendar::constant(Resources::NONE).with_exceptions(times)?,
            classes: None,
            charge: of.charge,
            gpus: of.gpus.as_ref().map(|gpus| Arc::new(gpus.counted())),
            terms: QueueTerms {
                default_memory: of.terms.default_memory.min(amount.get(Kind::Memory)),
                users: Some(self.users.clone()),
                ..of.terms.clone()
            },
        })
    }
}

impl Setup {
    /// Returns whether a queue is that of a reservation.
    pub(crate) fn is_reservation(&self, queue: &str) -> bool {
        self.reservations.iter().any(|one| one.name == queue && one.give_to.is_none())
    }

    /// Returns the queue of the configuration whose rules apply to the jobs of a queue.
    pub(crate) fn configured_queue<'a>(&'a self, queue: &'a str) -> &'a str {
        let reservation = self.reservations.iter().find(|reservation| reservation.name == queue);
        reservation.map_or(queue, |reservation| &reservation.of)
    }

    /// Returns the queues of the configuration with these reservations in place of the present ones.
    ///
    /// # Errors
    /// The first reservation for which a pool has too little.
    pub(crate) fn with_reservations(mut self, reservations: &[Reservation]) -> Result<Setup, Problem> {
        for before in std::mem::take(&mut self.reservations) {
            self.queues.retain(|queue| queue.name != before.name);
        }
        for queue in &mut self.queues {
            queue.pool = queue.pool.clone().without_exceptions();
        }
        for reservation in reservations {
            self.reserve(reservation)?;
        }
        self.reservations = reservations.to_vec();
        Ok(self)
    }

    fn reserve(&mut self, reservation: &Reservation) -> Result<(), Problem> {
        let name = &reservation.name;
        if self.queues.iter().any(|queue| queue.name == *name) {
            return Err(refused(format!("reservation {name}: there is a queue of that name")));
        }
        let of = self.queues.iter_mut().find(|queue| queue.name == reservation.of);
        let of =
            of.ok_or_else(|| refused(format!("reservation {name}: queue {} is gone", reservation.of)))?;
        if !of.policy.needs().calendar {
            let message = format!(
                "reservation {name}: the policy of queue {}, {}, plans with a constant pool",
                of.name, of.policy
            );
            return Err(refused(message));
        }
        if reservation.resources().get(Kind::Gpus) > 0 && of.classed_gpus().is_some() {
            let message = format!(
                "reservation {name}: queue {} has GPUs of several types or in shares, and a reservation names none; reserve without \
                 GPUs",
                of.name
            );
            return Err(refused(message));
        }
        let mine = match &reservation.give_to {
            None => {
                let mine = reservation.queue(of);
                Some(mine.ok_or_else(|| refused(format!("reservation {name}: this version cannot read it")))?)
            }
            Some(_) => None,
        };
        let amount = reservation.resources();
        for (from, to) in reservation.times() {
            let mut lack = None;
            let pool = of.pool.clone().changed_within(from, to, |there| {
                lack = lack.or((!amount.fits_in(&there)).then_some(there));
                there.less(&amount)
            });
            if let Some(there) = lack {
                let message = format!(
                    "reservation {name}: of the pool of queue {}, {} cpus, {} of memory and {} GPUs are not reserved yet",
                    of.name,
                    there.cpus_count(),
                    miserly_units::memory(there.get(Kind::Memory).saturating_mul(1024)),
                    there.get(Kind::Gpus),
                );
                return Err(refused(message));
            }
            of.pool = pool;
        }
        let Some(to) = &reservation.give_to else {
            self.queues.extend(mine);
            return Ok(());
        };
        let to = self.queues.iter_mut().find(|queue| queue.name == *to && queue.policy.needs().calendar);
        let to = to.ok_or_else(|| {
            refused(format!(
                "reservation {name}: the queue that gets it is gone, or plans with a constant pool"
            ))
        })?;
        for (from, until) in reservation.times() {
            to.pool = to.pool.clone().changed_within(from, until, |there| there.plus(&amount));
        }
        Ok(())
    }
}

/// Checks that a queue can give resources to another one for a time.
fn check_given(setup: &Setup, of: &Queue, to: &str, written: &model::Reservation) -> Result<(), Problem> {
    if !written.users.is_empty() || !written.groups.is_empty() || written.policy.is_some() {
        let message = "give_to: the users and the policy are those of the queue that gets the resources";
        return Err(refused_field("give_to", message.into()));
    }
    let Some(queue) = setup.queue(to).filter(|queue| !setup.is_reservation(&queue.name)) else {
        return Err(refused_field("give_to", format!("give_to: there is no queue {to:?}")));
    };
    if queue.name == of.name {
        return Err(refused_field("give_to", format!("give_to: queue {to} has them already")));
    }
    if !queue.policy.needs().calendar {
        let message = format!(
            "the policy of queue {to}, {}, plans with a constant pool; `miserly policies` shows the others",
            queue.policy
        );
        return Err(refused_field("give_to", message));
    }
    let gpus = |of: &Queue| of.gpus.as_ref().map(|gpus| gpus.indexes());
    if written.gpus > 0 && (queue.classed_gpus().is_some() || gpus(of) != gpus(queue)) {
        let message =
            format!("give_to: queue {to} cannot use the GPUs of queue {}, by their indexes", of.name);
        return Err(refused_field("give_to", message));
    }
    let own = setup.own_cpus();
    match [&of.name, &queue.name].into_iter().find(|name| own.contains_key(*name)) {
        Some(name) => {
            let message = format!("give_to: queue {name} has processors of its own, by number");
            Err(refused_field("give_to", message))
        }
        None => Ok(()),
    }
}

/// Checks the name of a new reservation.
fn check_name(setup: &Setup, name: &str) -> Result<(), Problem> {
    if name.len() > NAME || !model::is_plain_name(name) {
        let message = format!("name: {name:?}: 1 to {NAME} letters, digits, - and _");
        return Err(Problem::with_field("name", message));
    }
    match setup.queue(name) {
        Some(_) => {
            let message = format!("there is a queue or a reservation {name}; choose another name");
            Err(Problem { code: ProblemCode::Conflict, ..Problem::with_field("name", message) })
        }
        None => Ok(()),
    }
}

/// Returns the resources of a request. Its memory is that of its part of the processors, if it names none.
fn amount(of: &Queue, granule: u64, written: &model::Reservation) -> Result<Resources, Problem> {
    let most = of.pool.most();
    let (cpus, pool_memory) = (written.cpus, most.get(Kind::Memory));
    if cpus == 0 || cpus > most.cpus_count().get() {
        let message = format!("cpus: {cpus}: queue {} has 1 to {}", of.name, most.cpus_count());
        return Err(refused_field("cpus", message));
    }
    if granule > 1 && !cpus.is_multiple_of(granule) {
        let message = format!("cpus: {cpus}: jobs get whole cores here, of {granule} processors each");
        return Err(refused_field("cpus", message));
    }
    let part = || u128::from(pool_memory) * u128::from(cpus) / u128::from(most.cpus_count().get());
    let memory = match written.memory {
        Some(bytes) if pool_memory > 0 => MemoryAmount::from_bytes(bytes)?.kilobytes(),
        _ => u64::try_from(part()).unwrap_or(pool_memory),
    };
    if pool_memory > 0 && !(MemoryAmount::LEAST.kilobytes()..=pool_memory).contains(&memory) {
        let most = miserly_units::memory(pool_memory.saturating_mul(1024));
        return Err(refused_field("memory", format!("memory: queue {} has up to {most}", of.name)));
    }
    if written.gpus > most.get(Kind::Gpus) {
        let message = format!("gpus: {}: queue {} has {}", written.gpus, of.name, most.get(Kind::Gpus));
        return Err(refused_field("gpus", message));
    }
    Ok(Resources::cpus(cpus).with(Kind::Memory, memory).with(Kind::Gpus, written.gpus))
}

/// Returns the times of a request. A beginning in the past is now.
fn times(now: Now, written: &[ReservedTime]) -> Result<Vec<Period>, Problem> {
    if !(1..=model::Reservation::TIMES_MOST).contains(&written.len()) {
        let message = format!("times: 1 to {} of them", model::Reservation::TIMES_MOST);
        return Err(Problem::with_field("times", message));
    }
    let period = |time: &ReservedTime| Period(now.ticks_at(time.from).max(now.ticks), now.ticks_at(time.to));
    let times: Vec<Period> = written.iter().map(period).collect();
    let forward = times.iter().all(|Period(from, to)| from < to);
    if !forward || !times.is_sorted_by(|Period(_, to), Period(next, _)| to <= next) {
        let message = "times: each ends after now and after its beginning, and before the next one begins";
        return Err(Problem::with_field("times", message));
    }
    Ok(times)
}

/// Returns the users of a request.
fn users(written: &model::Reservation) -> Result<QueueUsers, Problem> {
    if written.users.is_empty() && written.groups.is_empty() {
        let message = "name the users or the groups who may use it";
        return Err(Problem::with_field("users", message));
    }
    let name = |name: &String| {
        let number = name.parse().map(AccountName::Number);
        number.unwrap_or_else(|_| AccountName::Name(name.clone()))
    };
    let names = |names: &[String]| names.iter().map(name).collect::<BTreeSet<_>>();
    Ok(QueueUsers { users: names(&written.users), groups: names(&written.groups) })
}

/// Returns the written form of a policy that plans with a calendar.
fn policy(written: &str) -> Result<String, Problem> {
    let policy: PolicySpec = written
        .parse()
        .map_err(|error| Problem::with_field("policy", format!("policy: {written}: {error}")))?;
    let needs = policy.needs();
    if !needs.calendar {
        let message = format!("policy: {policy} plans with a constant pool");
        return Err(refused_field("policy", message));
    }
    if needs.known_runtimes || needs.beyond_limits {
        return Err(refused_field("policy", format!("policy: {policy} runs in simulations only")));
    }
    Ok(policy.to_string())
}

fn refused(message: String) -> Problem {
    Problem::new(ProblemCode::Refused, message)
}
