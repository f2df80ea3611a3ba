//! Orders of the queue.

use miserly_core::{Entry, JobNumber, Time};

/// An order of the queue (Zotkin et al. §5, §6). Ties by submit time, then by job number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// First come, first served.
    #[default]
    Arrival,
    /// Shortest estimate first.
    Shortest,
    /// Longest estimate first.
    Longest,
    /// Fewest processors first.
    Narrowest,
    /// Most processors first.
    Widest,
}

/// A job's place in an order: smaller comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    primary: i64,
    submit: Time,
    number: JobNumber,
    admitted: u64,
}

impl Order {
    /// Every order, with the name by which it is written and what it means.
    pub const ALL: [(Order, &'static str, &'static str); 5] = [
        (Order::Arrival, "arrival", "first come, first served"),
        (Order::Shortest, "shortest", "shortest estimate first"),
        (Order::Longest, "longest", "longest estimate first"),
        (Order::Narrowest, "narrowest", "fewest processors first"),
        (Order::Widest, "widest", "most processors first"),
    ];

    /// The job's place in this order.
    pub fn key(self, entry: &Entry) -> Key {
        let request = &entry.request;
        // No machine has more processors than an i64 counts.
        let procs = i64::try_from(request.procs()).unwrap_or(i64::MAX);
        let primary = match self {
            Order::Arrival => 0,
            Order::Shortest => request.estimate.ticks(),
            Order::Longest => -request.estimate.ticks(),
            Order::Narrowest => procs,
            Order::Widest => -procs,
        };
        Key { primary, submit: request.submit, number: request.number, admitted: entry.admitted }
    }
}
