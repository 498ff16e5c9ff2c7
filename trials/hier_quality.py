"""quality.py which seeds...  which: unit raw unit150 raw150 ml"""
import sys, time, numpy as np, coterie
from coterie.datasets import load_payoffs
from coterie.environments import Payoffs
D="/work/shared/data/"
which=sys.argv[1]; lo,hi=map(int,sys.argv[2].split("-")); names=sys.argv[3].split(",")
if which.startswith("ml"):
    table=load_payoffs("movielens",D+("ml-latest-small" if "small" in which else "ml-latest-head")+"/ratings.csv",setting="rated")
    K,T=10,40000
else:
    table=load_payoffs("lastfm",D+"hetrec2011-lastfm-2k",setting="lastfm-2014",unit=which.startswith("unit"))
    K,T=25,150000 if which.endswith("150") else 30000
res={n:[] for n in names}
for seed in range(lo,hi+1):
    kw={"n_users":500} if which=="ml" else {}
    w=Payoffs(table,n_arms=K,seed=seed,**kw)
    for n in names:
        make=getattr(coterie,n)
        p=make(w.n_users,w.dim,**({"beta":0.1} if n.startswith("Lin") else {}))
        tr=coterie.simulate(p,w,T,record=1)
        res[n].append((tr.regret[-1] if which.startswith("ml") else tr.reward[-1], 1e6*tr.seconds/T))
for n in names:
    a=np.array(res[n]); print(which,w.n_users,n,f"{a[:,0].mean():.1f} ± {a[:,0].std(ddof=1)/len(a)**.5 if len(a)>1 else 0:.1f}",np.round(a[:,0],1).tolist(),f"{a[:,1].mean():.1f} us",flush=True)
