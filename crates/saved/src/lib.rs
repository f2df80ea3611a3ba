//! Ledger entries as they are stored.
//!
//! The ledger's types have no stored form. These types are that form. A released version must be able to read the state of
//! every earlier one.

mod entry;

mod request;

mod state;

mod share;

mod amounts;

mod work;

mod slots;

mod promise;

mod policy_state;

pub mod ticks;

pub use amounts::{Amounts, amounts, resources};
pub use entry::SavedEntry;
pub use policy_state::SavedLedgerState;
pub use promise::SavedBreachCause;
pub use request::{SavedDevices, SavedForm, SavedRequest};
