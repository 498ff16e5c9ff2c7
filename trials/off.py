import sys, coterie, numpy as np, csv
from dataclasses import replace
from coterie.experiments import figures
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
D="/work/shared/data"
paths={"synthetic":None,"movielens":D+"/ml-latest-small/ratings.csv","lastfm":D+"/hetrec2011-lastfm-2k","yelp":D+"/yelp"}
old={(r["dataset"],r["variation"]):r for r in csv.DictReader(open("docs/reproduce/auto/summary.csv")) if "AutoCLUB" in r.values()}
seeds=[int(x) for x in sys.argv[3].split(",")]
for v in figures._AUTO_WORLDS:
    if v.horizon and v.horizon>20000: continue
    if sys.argv[2]!="all" and v.label not in sys.argv[2].split(";"): continue
    for ds in sys.argv[1].split(","):
        if v.datasets and ds not in v.datasets: continue
        spec=replace(v.environment or EnvironmentSpec(),dataset=ds)
        data=coterie.datasets.load(ds,paths[ds],**spec.data_options())
        r=[]; ari=[]
        for s in seeds:
            w=spec.make(data,s); t=coterie.simulate(PolicySpec("AutoCLUB").make(w,s),w,20000,record=1); r.append(t.regret[-1]); ari.append(t.ari[-1])
        o=old.get((ds,v.label)); o=float(o["regret"]) if o else float("nan")
        print(f"{ds:<10}{v.label:<18}{np.mean(r):8.1f} was {o:8.1f} ratio {np.mean(r)/o:.3f} ari {np.mean(ari):.2f}",flush=True)
