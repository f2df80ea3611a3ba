//! Enums whose variants have names.

/// Defines an enum with `ALL`, its variants in order, and `name`.
#[doc(hidden)]
#[macro_export]
macro_rules! listed_enum {
    ($(#[$about:meta])* $vis:vis enum $Enum:ident { $($(#[$doc:meta])* $Variant:ident $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $Enum {
            $($(#[$doc])* $Variant,)*
        }

        impl $Enum {
            /// All variants in order.
            $vis const ALL: [$Enum; [$($name),*].len()] = [$($Enum::$Variant),*];

            /// Returns the name in output.
            $vis const fn name(self) -> &'static str {
                match self { $($Enum::$Variant => $name,)* }
            }
        }
    };
}

/// Defines an enum as [`listed_enum!`], and `Display`, which writes the name.
#[doc(hidden)]
#[macro_export]
macro_rules! named_enum {
    ($(#[$about:meta])* $vis:vis enum $Enum:ident { $($variants:tt)* }) => {
        $crate::listed_enum! { $(#[$about])* $vis enum $Enum { $($variants)* } }

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
        $(#[$doc:meta])* $vis:vis enum $Enum:ident, $property:ident: $Property:ident
        { $($Variant:ident $name:literal $value:ident $about:literal,)* }
    ) => {
        $crate::named_enum! {
            $(#[$doc])*
            #[expect(clippy::doc_markdown, reason = "the same words are shown to users, without backticks")]
            $vis enum $Enum { $(#[doc = $about] $Variant $name,)* }
        }

        impl $Enum {
            /// Returns a line with the meaning and the consequence.
            $vis const fn about(self) -> &'static str {
                match self { $($Enum::$Variant => $about,)* }
            }

            #[doc = concat!("Returns the ", stringify!($property), ".")]
            $vis const fn $property(self) -> $Property {
                match self { $($Enum::$Variant => $Property::$value,)* }
            }
        }
    };
}
