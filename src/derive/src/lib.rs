//! `#[derive(Plain)]`, which the crate `fmpl` hands on with its feature `derive`.

use proc_macro::TokenStream;
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Result, parse_macro_input};

/// Says of a structure that it is plain: its fields are, and there are no gaps between them. What is not so does not compile.
///
/// The structure is `#[repr(C)]` or `#[repr(transparent)]`, so that it is laid out alike in all programs, and has no parameters.
#[proc_macro_derive(Plain)]
pub fn plain(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    implementation(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn implementation(input: &DeriveInput) -> Result<proc_macro2::TokenStream> {
    let name = &input.ident;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(
            name.span(),
            "only a structure can be plain: not all bytes are a value of an enum or union",
        ));
    };
    if let Some(parameter) = input.generics.params.first() {
        return Err(Error::new(
            parameter.span(),
            "a structure with parameters has no one layout that could be looked at",
        ));
    }
    if !is_laid_out(input)? {
        return Err(Error::new(name.span(), "a plain structure is #[repr(C)] or #[repr(transparent)]"));
    }
    let types = data.fields.iter().map(|field| &field.ty);
    let are_plain = types.clone().map(|ty| quote_spanned!(ty.span()=> is::<#ty>();));
    let sizes = types.map(|ty| quote_spanned!(ty.span()=> + ::core::mem::size_of::<#ty>()));
    Ok(quote_spanned! { name.span()=>
        #[allow(clippy::identity_op)]
        const _: () = {
            const fn is<T: ::fmpl::Plain>() {}
            #(#are_plain)*
            assert!(::core::mem::size_of::<#name>() == 0 #(#sizes)*, "a plain structure has no gaps between its fields or behind them");
        };
        // SAFETY: its fields are plain, and there is nothing else in it, as was just seen to.
        unsafe impl ::fmpl::Plain for #name {}
    })
}

/// Does it say how it is laid out?
fn is_laid_out(input: &DeriveInput) -> Result<bool> {
    let mut is = false;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            is |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
            if meta.input.peek(syn::token::Paren) {
                // align(N), packed(N)
                meta.input.parse::<proc_macro2::Group>()?;
            }
            Ok(())
        })?;
    }
    Ok(is)
}
