//! Enums whose variants have names.

/// Defines an enum with `ALL`, its variants in order, and `name`, which `Display` writes.
#[doc(hidden)]
#[macro_export]
macro_rules! named_enum {
    ($(#[$about:meta])* $Enum:ident [$count:literal] { $($(#[$doc:meta])* $Variant:ident $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $Enum {
            $($(#[$doc])* $Variant,)*
        }

        impl $Enum {
            /// All variants in order.
            pub const ALL: [$Enum; $count] = [$($Enum::$Variant),*];

            /// Returns the name in output.
            pub const fn name(self) -> &'static str {
                match self { $($Enum::$Variant => $name,)* }
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Defines an enum with `ALL`, `name`, `about` and a property of each variant.
#[doc(hidden)]
#[macro_export]
macro_rules! described_enum {
    (
        $(#[$doc:meta])* $Enum:ident [$count:literal], $property:ident: $Property:ident
        { $($Variant:ident $name:literal $value:ident $about:literal,)* }
    ) => {
        $crate::named_enum! {
            $(#[$doc])*
            #[expect(clippy::doc_markdown, reason = "the same words are shown to users, without backticks")]
            $Enum [$count] { $(#[doc = $about] $Variant $name,)* }
        }

        impl $Enum {
            /// Returns a line with the meaning and the consequence.
            pub const fn about(self) -> &'static str {
                match self { $($Enum::$Variant => $about,)* }
            }

            #[doc = concat!("Returns the ", stringify!($property), ".")]
            pub const fn $property(self) -> $Property {
                match self { $($Enum::$Variant => $Property::$value,)* }
            }
        }
    };
}
