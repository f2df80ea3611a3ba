//! Devices of hosts, such as GPUs: classes, requests, and placement on named devices.
//!
//! A machine with devices has a [`DeviceTable`]. A machine without devices has none, and pays nothing.
//!
//! Devices are counted in [cells](DeviceCell). The devices of a class on a host are one cell, counted in devices: their
//! identity does not matter before the start. A device that may be given in shares is a cell of its own, counted in
//! kilobytes of its memory. So a share is planned on one device, like a job on a small host, and never in a sum.
//!
//! # Example
//! ```
//! use miserly_core::devices::{DeviceClass, DeviceGroup, DeviceRequest, DeviceTable};
//!
//! let class = DeviceClass { name: "a100".into(), memory: Some(80 << 20), part_of: None, shares: false };
//! let table = DeviceTable::new(&[vec![DeviceGroup { class, count: 8, parts: 1 }]])?;
//! let request: DeviceRequest = "a100:2".parse()?;
//! assert_eq!(table.demand(&request)?.count(), 2);
//! let error = table.demand(&"h100".parse()?).unwrap_err();
//! assert_eq!(error.to_string(), "no GPU of type \"h100\"; the types are a100");
//! # Ok::<(), miserly_core::devices::DeviceError>(())
//! ```

mod class;

mod request;

mod demand;

mod table;

mod held;

mod fit;

mod fragments;

pub use class::{ClassSet, DeviceClass, DeviceGroup};
pub use demand::{DeviceDemand, ShareAmount};
pub(crate) use fit::FreeDevices;
pub use fit::{DeviceFit, FitRule};
pub use fragments::TypicalDemands;
pub use held::HeldDevices;
pub use request::{DeviceError, DeviceRequest};
pub use table::{CellId, DeviceCell, DeviceTable};
