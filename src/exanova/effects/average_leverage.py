"""The fit on other rows by the mean leverage of a row, where leaving out each would cost more than the fit.

A row predicted by the others is missed by e_i / (1 - h_i), and the h_i of all rows add up to the rank. With their mean
in place of each (generalised cross-validation) nothing is needed but the rank and the number of rows:

    mean squared error on other rows = mean squared error / (1 - rank / rows)^2,

the same as leaving out each row if all have the same leverage, as in a balanced table.
"""

from __future__ import annotations

from dataclasses import replace

from exanova.effects.certificate import Certificate

ON_AVERAGE = "leaving out a row of average leverage"


def on_average(certificate: Certificate, rows: float) -> Certificate:
    """The certificate with the fit on other rows, estimated from the rank and the number of ``rows``.

    Unchanged if there are no more rows than the rank: then each may determine its own fit.
    """
    kept = 1.0 - certificate.rank / rows if rows > 0 else 0.0
    if kept <= 0:
        return certificate
    r2_eval, mse_eval = 1.0 - (1.0 - certificate.r2) / kept**2, certificate.mse / kept**2
    return replace(certificate, r2_eval=r2_eval, mse_eval=mse_eval, eval_method=ON_AVERAGE)
