/** The used part of the untyped package `macaroon` 3.0.4, without `exportBinary`, which doubles its buffer at every append. */
declare module "macaroon" {
  export interface PackageCaveat {
    readonly identifier: Uint8Array;
    /** Third-party caveats only. */
    readonly location?: string;
    readonly vid?: Uint8Array;
  }

  export interface PackageMacaroon {
    readonly location: string | undefined;
    readonly identifier: Uint8Array;
    readonly caveats: readonly PackageCaveat[];
    readonly signature: Uint8Array;
    addFirstPartyCaveat(condition: Uint8Array | string): void;
    /** Throws unless every caveat passes `check` (which returns null for a satisfied caveat) and the signature is valid. */
    verify(rootKey: Uint8Array, check: (condition: string) => string | null): void;
  }

  interface MacaroonPackage {
    newMacaroon(parts: { identifier: Uint8Array; rootKey: Uint8Array; location?: string }): PackageMacaroon;
    importMacaroon(v2: Uint8Array): PackageMacaroon;
  }

  const macaroon: MacaroonPackage;
  export default macaroon;
}
